package lambda

import (
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
	Sparse bool   // the features are sparse
	Kernel string // the sender's instruction set; a receiver without it uses its best one
}

// Request is the payload of an invocation.
type Request struct {
	Network json.RawMessage // a Network
	Pull    Pull
	Corrupt bool `json:",omitempty"` // change a byte of the result: the fault of that name
}

// Pull describes where a function fetches a task, once, and sends its result, once. It uses HTTPS:
// GET TaskPath and POST ResultPath, each with the token as bearer token. The network is part of the
// request, because the function caches it.
type Pull struct {
	Address     string // host:port of an endpoint
	Fingerprint string // SHA-256 of its self-signed certificate, hexadecimal
	Token       string
	MostResult  int64 // maximum size of the result in bytes
}

// The paths of an endpoint.
const (
	TaskPath   = "/task"
	ResultPath = "/result"
)

// Check returns an error unless p describes an endpoint completely.
func (p Pull) Check() error {
	sum, err := hex.DecodeString(p.Fingerprint)
	if _, _, bad := net.SplitHostPort(p.Address); bad != nil {
		return fmt.Errorf("invalid address of an endpoint: %q: %w", p.Address, bad)
	}
	if err != nil || len(sum) != 32 {
		return fmt.Errorf("invalid fingerprint of an endpoint: %q is not a SHA-256", p.Fingerprint)
	}
	if p.Token == "" || p.MostResult <= 0 {
		return fmt.Errorf("invalid endpoint: a token of %d bytes, and results of at most %d bytes", len(p.Token), p.MostResult)
	}
	return nil
}

// Reply is the payload that an invocation returns.
type Reply struct {
	Refused string // reason for a missing result, if another attempt would fail too
	Spent   *Spent `json:",omitempty"` // nil without a result
}

// Spent is the resource usage of a task in its function, in bytes and microseconds. Work
// does not include the time in which the function waits for the task, so that Fetch, Work and Push
// add up to the total time.
type Spent struct {
	In, Out           int64
	Fetch, Work, Push int64
}

// Add adds the usage of another task.
func (s *Spent) Add(o Spent) {
	s.In, s.Out = s.In+o.In, s.Out+o.Out
	s.Fetch, s.Work, s.Push = s.Fetch+o.Fetch, s.Work+o.Work, s.Push+o.Push
}

// TooLarge returns the fault for a task or result of n bytes that exceeds the maximum of a data
// endpoint.
func TooLarge(what string, n, most int64) error {
	return fault.New(fault.Config, "lambda", "", "%s has %d bytes, but the data endpoint accepts at most %d", what, n, most).
		Then("set a larger --intervals: a task has the rows of one interval and the weights of its layers")
}

// Failed is the payload of an invocation whose function failed.
type Failed struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (f *Failed) Error() string { return fmt.Sprintf("the function failed: %s: %s", f.Type, f.Message) }
