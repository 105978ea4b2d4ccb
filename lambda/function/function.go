// Package function is the function of tensor work in AWS Lambda. It returns the result of a
// task. Between two invocations it caches only the network of the last specification, and the
// connection to the last endpoint that it pulled a task from. Its program is in bootstrap,
// which is built without cgo as one static file.
package function

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"

	"siafu/halo/codec"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/lambda"
)

// Function does tasks, one at a time.
type Function struct {
	ops     *kernels.Team
	spec    json.RawMessage // that network is of; nil before the first task
	network *model.Network
	relay   *url.URL // that connections go through; nil: none
	line    *line    // to the endpoint of the last task that was pulled
}

// New returns a function that knows no network yet.
//
// Where the environment has SIAFU_RELAY, host:port, connections to endpoints go through
// an HTTP proxy there, so that a local service can limit their bandwidth.
func New() *Function {
	f := &Function{ops: kernels.NewTeam(1)}
	if relay := os.Getenv("SIAFU_RELAY"); relay != "" {
		f.relay = &url.URL{Scheme: "http", Host: relay}
	}
	return f
}

// Close ends the function.
func (f *Function) Close() {
	f.ops.Close()
	f.line.close()
}

// Handle does the task of a request. A result that no payload can hold, or that is
// larger than its endpoint takes, is refused.
func (f *Function) Handle(ctx context.Context, r lambda.Request) (lambda.Reply, error) {
	if err := f.know(r.Network); err != nil {
		return lambda.Reply{}, err
	}
	if r.Pull != nil {
		return f.pull(ctx, *r.Pull)
	}
	result, err := task.Work(f.network, r.Task, nil, f.ops, codec.TaskCodec)
	if err != nil {
		return lambda.Reply{}, err
	}
	if err := lambda.CheckSize("the result of a task", len(result), 0); err != nil {
		return lambda.Reply{Refused: err.Error()}, nil
	}
	return lambda.Reply{Result: result}, nil
}

// know makes the network of a specification, unless the last task had the same one.
func (f *Function) know(spec json.RawMessage) error {
	if f.network != nil && bytes.Equal(spec, f.spec) {
		return nil
	}
	var n lambda.Network
	if err := json.Unmarshal(spec, &n); err != nil {
		return fmt.Errorf("the specification of the network: %w", err)
	}
	if err := check(n.Spec); err != nil {
		return err
	}
	if f.ops.Use(n.Kernel) != nil { // another processor's
		if err := f.ops.Use(kernels.Variants()[0]); err != nil {
			return err
		}
	}
	f.network, f.spec = model.New(n.Spec, n.Sparse), slices.Clone(spec)
	return nil
}

// mostLayers and mostColumns bound the networks that a function makes.
const (
	mostLayers  = 65_000
	mostColumns = 1 << 24
)

// check refuses what is no network, so that a stranger's specification ends one
// invocation and not the function.
func check(s model.Spec) error {
	if len(s.Dims) < 2 || len(s.Dims) > mostLayers || len(s.Orders) != s.Layers() {
		return fmt.Errorf("a network with %d dimensions and %d orders of its products", len(s.Dims), len(s.Orders))
	}
	for l, d := range s.Dims {
		if d > mostColumns {
			return fmt.Errorf("layer %d of a network is %d wide", l, d)
		}
	}
	return s.Check()
}
