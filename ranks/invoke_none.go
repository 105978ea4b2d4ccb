//go:build !lambda

package ranks

import (
	"siafu/graph/fault"
	"siafu/lambda"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
)

// functions are those of a build with Lambda.
type functions struct{}

// canInvoke tells whether this build can have tensor work done in functions.
//
// Design note: the AWS SDK would make the program half as large again and take every
// rank of every run four megabytes, and most runs never invoke anything.
func canInvoke(c Config) error {
	if c.Tensor != config.TensorLambda {
		return nil
	}
	return fault.New(fault.Config, "train", "", "--tensor lambda: this siafu has been built without it").
		Then("build one with it: make build LAMBDA=1")
}

// invoke has nothing to do.
func (r *run) invoke() error { return nil }

// opens is never called: such a run has been refused.
func (r *run) opens() (open func(int, lambda.Network) (tensor.Transport, error), close func() error) {
	return nil, func() error { return nil }
}

// findFunction says where tensor work can run.
func findFunction(f *findings) {
	f.add("tensor", `this build has no Lambda; "make build LAMBDA=1" builds one that has`, "cpu", true, "lambda", false)
}
