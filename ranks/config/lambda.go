package config

import (
	"cmp"

	"siafu/graph/fault"
	"siafu/lambda"
)

// Places of tensor work, and whose functions do it.
const (
	TensorLambda = "lambda"
	LambdaLocal  = "local"
	LambdaAWS    = "aws"
)

// Limits of the sandboxes of LambdaLocal.
const (
	LimitsNone   = "none"
	LimitsMemory = "memory"
	LimitsAWS    = "aws"
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
	case c.Tensor != TensorLambda && c.Lambda+c.LambdaFunction != "":
		return refuse("--lambda and --lambda-function need --tensor lambda")
	case c.Tensor != TensorLambda:
		return nil
	case c.Lambda != LambdaLocal && c.Lambda != LambdaAWS:
		return refuse("--lambda must be local or aws")
	case c.LambdaMemory < leastMemory || c.LambdaMemory > mostMemory:
		return fault.New(fault.Usage, "train", "", "--lambda-memory=%d", c.LambdaMemory).
			Then("AWS Lambda has functions with %d to %d MB", leastMemory, mostMemory)
	case c.Kernel == "openblas":
		return fault.New(fault.Usage, "train", "", "--tensor=lambda with --kernel=openblas").
			Then("choose other kernels: the function is built without OpenBLAS")
	}
	return nil
}

// checkSandboxes refuses what only sandboxes on this machine can be told, and what
// makes no sense there.
func (c *Config) checkSandboxes() error {
	switch c.LambdaLimits {
	case LimitsNone, LimitsMemory, LimitsAWS:
	default:
		return fault.New(fault.Usage, "train", "", "--lambda-limits=%s", c.LambdaLimits).Then("it must be none, memory or aws")
	}
	if c.Lambda != LambdaLocal && (c.LambdaLimits != LimitsNone || c.LambdaFaults != "") {
		return fault.New(fault.Usage, "train", "", "--lambda-limits=%s and --lambda-faults=%q with --lambda=%q", c.LambdaLimits, c.LambdaFaults, c.Lambda).
			Then("they need --lambda local: the service itself has limits of its own")
	}
	_, err := lambda.ParseFaults(c.LambdaFaults)
	return err
}

// FunctionName is the function that is invoked.
func (c *Config) FunctionName() string {
	if c.Lambda == LambdaAWS {
		return cmp.Or(c.LambdaFunction, "siafu")
	}
	return "siafu"
}
