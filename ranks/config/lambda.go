package config

import (
	"cmp"
	"runtime"

	"siafu/graph/fault"
	"siafu/lambda/bill"
)

// Places of tensor work, and whose functions do it.
const (
	TensorLambda = "lambda"
	LambdaLocal  = "local"
	LambdaAWS    = "aws"
)

// leastMemory and mostMemory bound a function's memory, in MB.
const (
	leastMemory = 128
	mostMemory  = 10_240
)

// checkLambda refuses what does not go together with tensor work in functions.
func (c *Config) checkLambda() error {
	refuse := func(remedy string) error {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --lambda=%q", c.Tensor, c.Lambda).Then("%s", remedy)
	}
	switch {
	case c.Tensor != TensorLambda && c.Bridges > 0:
		return fault.New(fault.Usage, "train", "", "--bridges=%d with --tensor=%s", c.Bridges, c.Tensor).Then("bridges need --tensor lambda")
	case c.Tensor != TensorLambda && c.LambdaAtOnce > 0:
		return fault.New(fault.Usage, "train", "", "--lambda-at-once=%d with --tensor=%s", c.LambdaAtOnce, c.Tensor).Then("it needs --tensor lambda")
	case c.Tensor != TensorLambda && c.Lambda+c.LambdaFunction+c.LambdaArch != "":
		return refuse("--lambda, --lambda-function and --lambda-arch need --tensor lambda")
	case c.Tensor != TensorLambda:
		return nil
	case c.Lambda != LambdaLocal && c.Lambda != LambdaAWS:
		return refuse("--lambda must be local or aws")
	case c.LambdaMemory < leastMemory || c.LambdaMemory > mostMemory:
		return fault.New(fault.Usage, "train", "", "--lambda-memory=%d", c.LambdaMemory).
			Then("AWS Lambda has functions with %d to %d MB", leastMemory, mostMemory)
	case c.Lambda == LambdaLocal && c.LambdaArch != "":
		return refuse("leave --lambda-arch out: local functions run on this machine's architecture")
	case c.Kernel == "openblas":
		return fault.New(fault.Usage, "train", "", "--tensor=lambda with --kernel=openblas").
			Then("choose other kernels: the function is built without OpenBLAS")
	}
	return nil
}

// Tariff is what invocations cost, by LambdaArch, else by the architecture of this
// machine.
func (c *Config) Tariff() bill.Tariff {
	host := "x86_64"
	if runtime.GOARCH == "arm64" {
		host = "arm64"
	}
	t, err := bill.Architecture(cmp.Or(c.LambdaArch, host))
	if err != nil {
		panic("config: an architecture without a tariff")
	}
	return t
}

// FunctionName is the function that is invoked.
func (c *Config) FunctionName() string {
	if c.Lambda == LambdaAWS {
		return cmp.Or(c.LambdaFunction, "siafu")
	}
	return "siafu"
}
