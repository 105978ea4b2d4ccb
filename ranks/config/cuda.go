package config

import "siafu/graph/fault"

// TensorCUDA is tensor work on GPUs; GraphCUDA is graph work there, and GraphCPU on
// processors.
const (
	TensorCUDA = "cuda"
	GraphCUDA  = "cuda"
	GraphCPU   = "cpu"
)

// GPUsGather tells whether graph work runs on GPUs, and with it everything else.
func (c *Config) GPUsGather() bool { return c.Tensor == TensorCUDA && c.GraphWork != GraphCPU }

// GPUsApply tells whether tensor work runs on GPUs, beside graph work on processors.
func (c *Config) GPUsApply() bool { return c.Tensor == TensorCUDA && c.GraphWork == GraphCPU }

// CheckCUDA refuses a command with graph work or products on GPUs and tensor work
// elsewhere.
func (c *Config) CheckCUDA(op string) error {
	if c.Tensor != TensorCUDA && c.CUDABLAS != "" && c.CUDABLAS != "auto" {
		return fault.New(fault.Usage, op, "", "--cuda-blas=%s with --tensor=%s", c.CUDABLAS, c.Tensor).
			Then("it is about products on GPUs, which --tensor cuda asks for")
	}
	if c.GraphWork != GraphCUDA || c.Tensor == TensorCUDA {
		return nil
	}
	return fault.New(fault.Usage, op, "", "--graph=%s with --tensor=%s", c.GraphWork, c.Tensor).
		Then("graph work on GPUs needs --tensor cuda")
}
