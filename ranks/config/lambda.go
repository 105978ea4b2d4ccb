package config

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/bill"
)

// Values of --tensor and --lambda.
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

// Float32 is the --lambda codec=CODEC that sends values unchanged.
const Float32 = "float32"

// Optimisations of tasks for functions (Dorylus, OSDI'21, §6) that --lambda without=LIST can disable.
const (
	Fusion            = "fusion"
	Rematerialisation = "rematerialisation"
	Streaming         = "streaming"
)

// checkLambda checks the flags of functions. With --tensor other than lambda, none may be set.
func (c *Config) checkLambda() error {
	refuse := func(remedy string) error {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --lambda=%q", c.Tensor, c.Lambda).Then("%s", remedy)
	}
	if c.Tensor != TensorLambda {
		var set []string
		for f, x := range c.Options() {
			option := f.Tag.Get("toml")
			p, _ := PartOf(option)
			forFunctions := option == "lambda" || p.Flag == "lambda"
			if forFunctions && !x.IsZero() && fmt.Sprint(x) != f.Tag.Get("default") {
				set = append(set, Spell(option, fmt.Sprint(x)))
			}
		}
		if len(set) > 0 {
			return fault.New(fault.Usage, "train", "", "%s with --tensor=%s", strings.Join(set, " "), c.Tensor).
				Then("set --tensor lambda: these flags apply to functions")
		}
		return nil
	}
	switch {
	case c.Lambda != LambdaLocal && c.Lambda != LambdaAWS:
		return refuse("--lambda must be local or aws")
	case c.LambdaMemory < leastMemory || c.LambdaMemory > mostMemory:
		return fault.New(fault.Usage, "train", "", "--lambda memory=%d", c.LambdaMemory).
			Then("set --lambda memory=MB from %d to %d MB, the range of AWS Lambda", leastMemory, mostMemory)
	}
	for what := range strings.SplitSeq(c.LambdaWithout, ",") {
		if all := []string{Fusion, Rematerialisation, Streaming}; c.LambdaWithout != "" && !slices.Contains(all, what) {
			return fault.New(fault.Usage, "train", "", "--lambda without=%q", c.LambdaWithout).
				Then("use a comma-separated list of %s", strings.Join(all, ", "))
		}
	}
	if _, err := c.TaskCodec(); err != nil {
		return fault.New(fault.Usage, "train", "", "--lambda codec=%q", c.LambdaCodec).
			Then("it must be float32, or one of %s; +ef and auto need state from earlier messages", codec.TaskNames())
	}
	return c.checkBridge()
}

// OnCPU returns the configuration with tensor work on the graph ranks and without bridges.
func (c Config) OnCPU() Config {
	if c.Ranks > 0 {
		c.Ranks -= c.Bridges
	}
	usual := Defaults()
	c.Tensor, c.FunctionOptions = usual.Tensor, usual.FunctionOptions
	return c
}

// TaskCodec returns the codec of rows to and from functions, or nil if they are sent unchanged.
func (c *Config) TaskCodec() (task.Codec, error) {
	if name := cmp.Or(c.LambdaCodec, Float32); name != Float32 {
		return codec.TaskCodec(name)
	}
	return nil, nil
}

// With reports whether tasks for functions use an optimisation.
func (c *Config) With(optimisation string) bool {
	return !slices.Contains(strings.Split(c.LambdaWithout, ","), optimisation)
}

// Tariff returns the price of invocations for LambdaArch, or for the architecture of this
// machine if it is empty.
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

// checkSandboxes checks the limits and faults of local sandboxes.
func (c *Config) checkSandboxes() error {
	switch c.LambdaLimits {
	case LimitsNone, LimitsMemory, LimitsAWS:
	default:
		return fault.New(fault.Usage, "train", "", "--lambda limits=%s", c.LambdaLimits).Then("it must be none, memory or aws")
	}
	_, err := lambda.ParseFaults(c.LambdaFaults)
	return err
}

// FunctionName returns the name of the function to invoke.
func (c *Config) FunctionName() string {
	if c.Lambda == LambdaAWS {
		return cmp.Or(c.LambdaFunction, "siafu")
	}
	return "siafu"
}
