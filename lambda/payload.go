package lambda

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"

	"siafu/internal/fault"
	"siafu/kernels/model"
)

// MaxPayload is the maximum payload of a synchronous invocation in bytes, in
// each direction.
const MaxPayload = 6 << 20

// Network describes the network to the receiver of a task.
type Network struct {
	Spec   model.Spec
	Sparse bool   // features are
	Kernel string // that the sender computes with; a receiver without it takes its best
}

// Request is the payload of an invocation. The task is in it, or is to be pulled.
type Request struct {
	Network json.RawMessage // a Network
	Task    []byte          `json:",omitempty"` // task.Encode's
	Pull    *Pull           `json:",omitempty"`
}

// Pull says where a task is, which a function fetches once and answers once, over
// HTTPS: GET TaskPath and POST ResultPath, each with the token as its bearer's. The
// network it gets in the request, because it keeps that.
type Pull struct {
	Address     string // host:port of an endpoint
	Fingerprint string // of its certificate, which no authority has signed: SHA-256, hexadecimal
	Token       string
	MostResult  int64 // bytes that the result may have
}

// The paths of an endpoint.
const (
	TaskPath   = "/task"
	ResultPath = "/result"
)

// Check refuses what does not say where a task is.
func (p Pull) Check() error {
	sum, err := hex.DecodeString(p.Fingerprint)
	if _, _, bad := net.SplitHostPort(p.Address); bad != nil {
		return fmt.Errorf("an endpoint at %q: %w", p.Address, bad)
	}
	if err != nil || len(sum) != 32 {
		return fmt.Errorf("an endpoint with the fingerprint %q, which is no SHA-256", p.Fingerprint)
	}
	if p.Token == "" || p.MostResult <= 0 {
		return fmt.Errorf("an endpoint with a token of %d bytes, for results of at most %d bytes", len(p.Token), p.MostResult)
	}
	return nil
}

// Reply is the payload that an invocation returns.
type Reply struct {
	Result  []byte `json:",omitempty"` // task.Work's, unless the task was pulled and answered
	Refused string // why there is none, where another attempt would end the same way
	Spent   *Spent `json:",omitempty"` // of a task that was pulled
}

// Spent is the resource usage of a pulled task in its function: bytes, and
// microseconds. Work is without the time in which the function waits for the task,
// and so Fetch, Work and Push add up.
type Spent struct {
	In, Out           int64
	Fetch, Work, Push int64
}

// Add adds another task's.
func (s *Spent) Add(o Spent) {
	s.In, s.Out = s.In+o.In, s.Out+o.Out
	s.Fetch, s.Work, s.Push = s.Fetch+o.Fetch, s.Work+o.Work, s.Push+o.Push
}

// around is a bound of what a payload has besides its base64.
const around = 64

// PayloadSize returns a bound of the size of a payload with n bytes of a task, or of a
// result, beside other bytes.
func PayloadSize(n, beside int) int { return base64.StdEncoding.EncodedLen(n) + beside + around }

// CheckSize refuses what does not fit into a payload.
func CheckSize(what string, n, beside int) error {
	if size := PayloadSize(n, beside); size > MaxPayload {
		return TooLarge("the payload of "+what, int64(size), "AWS Lambda", MaxPayload)
	}
	return nil
}

// TooLarge returns the fault of a task or a result of n bytes where somebody takes fewer.
func TooLarge(what string, n int64, who string, most int64) error {
	return fault.New(fault.Config, "lambda", "", "%s has %d bytes, but %s accepts at most %d", what, n, who, most).
		Then("set a larger --intervals: a task has the rows of one interval and the weights of its layers")
}

// Failed is the payload of an invocation with a failed function.
type Failed struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (f *Failed) Error() string { return fmt.Sprintf("the function failed: %s: %s", f.Type, f.Message) }
