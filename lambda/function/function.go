// Package function is the function of tensor work in AWS Lambda. It returns the result of a task.
// Between invocations it caches only two things: the network of the last specification, and the
// connection to the last endpoint. Its program is in bootstrap, which is built without cgo as one
// static file.
package function

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"

	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/lambda"
)

// Function computes tasks, one at a time.
type Function struct {
	ops        *kernels.Team
	spec       json.RawMessage // of network; nil before the first task
	network    *model.Network
	relay      *url.URL    // proxy of connections; nil: none
	connection *connection // to the endpoint of the last task
}

// New returns a function without a network.
//
// If the environment variable SIAFU_RELAY contains host:port, connections to endpoints use the HTTP
// proxy at that address. The local service uses this proxy to limit bandwidth.
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
	f.connection.close()
}

// Handle fetches the task of a request from its endpoint, computes it and sends its result. It
// rejects a result that is too large for the endpoint.
func (f *Function) Handle(ctx context.Context, r lambda.Request) (lambda.Reply, error) {
	if err := f.setNetwork(r.Network); err != nil {
		return lambda.Reply{}, err
	}
	return f.pull(ctx, r.Pull, r.Corrupt)
}

// setNetwork builds the network of a specification, unless the last task had the same
// specification.
func (f *Function) setNetwork(spec json.RawMessage) error {
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
	if f.ops.Use(n.Kernel) != nil { // this processor lacks the instructions
		if err := f.ops.Use(kernels.Best()); err != nil {
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

// check returns an error for an invalid specification, so that such a request fails its own
// invocation only.
func check(s model.Spec) error {
	if len(s.Dims) < 2 || len(s.Dims) > mostLayers || len(s.Orders) != s.Layers() {
		return fmt.Errorf("a network with %d dimensions and %d orders of its products; want 2 to %d dimensions and one order per layer",
			len(s.Dims), len(s.Orders), mostLayers)
	}
	for l, d := range s.Dims {
		if d > mostColumns {
			return fmt.Errorf("layer %d of a network is %d wide", l, d)
		}
	}
	return s.Check()
}
