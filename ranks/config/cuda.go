package config

import "siafu/internal/fault"

// TensorCUDA is tensor work on GPUs; GraphCUDA is graph work there, and GraphCPU on
// processors.
const (
	TensorCUDA = "cuda"
	GraphCUDA  = "cuda"
	GraphCPU   = "cpu"
)

// GPUsGather reports whether graph work, and therefore everything else, runs on GPUs.
func (c *Config) GPUsGather() bool { return c.Tensor == TensorCUDA && c.GraphWork != GraphCPU }

// GPUsApply reports whether tensor work runs on GPUs and graph work on CPUs.
func (c *Config) GPUsApply() bool { return c.Tensor == TensorCUDA && c.GraphWork == GraphCPU }

// CheckCUDA returns an error if graph work or products are on GPUs but tensor work is not.
func (c *Config) CheckCUDA(op string) error {
	if c.Tensor != TensorCUDA && c.CUDABLAS != "" && c.CUDABLAS != "auto" {
		return fault.New(fault.Usage, op, "", "--cuda-blas=%s with --tensor=%s", c.CUDABLAS, c.Tensor).
			Then("set --tensor cuda: this flag applies to products on GPUs")
	}
	if c.GraphWork != GraphCUDA || c.Tensor == TensorCUDA {
		return nil
	}
	return fault.New(fault.Usage, op, "", "--graph=%s with --tensor=%s", c.GraphWork, c.Tensor).
		Then("set --tensor cuda: graph work on GPUs needs it")
}
