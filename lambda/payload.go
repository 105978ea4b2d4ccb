package lambda

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"siafu/graph/fault"
	"siafu/kernels/model"
)

// MaxPayload is how many bytes the payload of a synchronous invocation may have, in
// each direction.
const MaxPayload = 6 << 20

// Network is what a task's receiver must know besides the task.
type Network struct {
	Spec   model.Spec
	Sparse bool   // features are
	Kernel string // that the sender computes with; a receiver without it takes its best
}

// Request is the payload of an invocation.
type Request struct {
	Network json.RawMessage // a Network
	Task    []byte          // task.Encode's
}

// Reply is the payload that an invocation returns.
type Reply struct {
	Result  []byte // task.Work's
	Refused string // why there is none, where another attempt would end the same way
}

// around is a bound of what a payload has besides its base64.
const around = 64

// PayloadSize is a bound of the size of a payload with n bytes of a task, or of a
// result, beside other bytes.
func PayloadSize(n, beside int) int { return base64.StdEncoding.EncodedLen(n) + beside + around }

// CheckSize refuses what does not fit into a payload.
func CheckSize(what string, n, beside int) error {
	if size := PayloadSize(n, beside); size > MaxPayload {
		return fault.New(fault.Config, "lambda", "", "%s needs a payload of %d bytes, and AWS Lambda takes %d", what, size, MaxPayload).
			Then("use --intervals with a larger number: a task has the rows of one interval, beside the weights of its layers")
	}
	return nil
}

// Failed is what the payload of an invocation says whose function has failed.
type Failed struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (f *Failed) Error() string { return fmt.Sprintf("the function failed: %s: %s", f.Type, f.Message) }
