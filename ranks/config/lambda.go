package config

import (
	"cmp"
	"net"
	"strings"

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
	case c.Tensor != TensorLambda && c.Lambda+c.LambdaFunction+c.BridgeAddress != "":
		return refuse("--lambda, --lambda-function and --bridge-address need --tensor lambda")
	case c.Tensor != TensorLambda:
		return nil
	case c.Lambda != LambdaLocal && c.Lambda != LambdaAWS:
		return refuse("--lambda must be local or aws")
	case c.Kernel == "openblas":
		return fault.New(fault.Usage, "train", "", "--tensor=lambda with --kernel=openblas").
			Then("choose other kernels: the function is built without OpenBLAS")
	case c.Lambda == LambdaAWS && c.BridgeAddress == "":
		return refuse("give --bridge-address too: functions connect to the ranks there")
	}
	for _, a := range c.bridge() {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fault.New(fault.Usage, "train", "", "--bridge-address=%s: %v", c.BridgeAddress, err).Then("give LISTEN or LISTEN,ADVERTISED, each host:port")
		}
	}
	return nil
}

// bridge are the one or two addresses of --bridge-address, none without it.
func (c *Config) bridge() []string {
	if c.BridgeAddress == "" {
		return nil
	}
	return strings.SplitN(c.BridgeAddress, ",", 2)
}

// Bridge is where functions connect to: what is listened on, and what they are told.
// Empty is what the endpoint chooses.
func (c *Config) Bridge() (listen, advertise string) {
	a := append(c.bridge(), "", "")
	return a[0], a[1]
}

// FunctionName is the function that is invoked.
func (c *Config) FunctionName() string {
	if c.Lambda == LambdaAWS {
		return cmp.Or(c.LambdaFunction, "siafu")
	}
	return "siafu"
}
