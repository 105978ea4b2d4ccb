package config

import (
	"cmp"

	"siafu/graph/fault"
)

// Places of tensor work, and whose functions do it.
const (
	TensorLambda = "lambda"
	LambdaLocal  = "local"
	LambdaAWS    = "aws"
)

// checkLambda refuses what does not go together with tensor work in functions.
func (c *Config) checkLambda() error {
	refuse := func(remedy string) error {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --lambda=%q", c.Tensor, c.Lambda).Then("%s", remedy)
	}
	switch {
	case c.Tensor != TensorLambda && c.Bridges > 0:
		return fault.New(fault.Usage, "train", "", "--bridges=%d with --tensor=%s", c.Bridges, c.Tensor).Then("bridges need --tensor lambda")
	case c.Tensor != TensorLambda && c.Lambda+c.LambdaFunction+c.BridgeAddress != "":
		return refuse("--lambda, --lambda-function and --bridge-address need --tensor lambda")
	case c.Tensor != TensorLambda:
		return nil
	case c.Lambda != LambdaLocal && c.Lambda != LambdaAWS:
		return refuse("--lambda must be local or aws")
	case c.Kernel == "openblas":
		return fault.New(fault.Usage, "train", "", "--tensor=lambda with --kernel=openblas").
			Then("choose other kernels: the function is built without OpenBLAS")
	}
	return c.checkBridge()
}

// FunctionName is the function that is invoked.
func (c *Config) FunctionName() string {
	if c.Lambda == LambdaAWS {
		return cmp.Or(c.LambdaFunction, "siafu")
	}
	return "siafu"
}
