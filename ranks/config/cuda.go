package config

// TensorCUDA is tensor work on GPUs. GraphCUDA is graph work on GPUs, and GraphCPU on CPUs.
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
func (c *Config) CheckCUDA(op string) error { return situation{Config: c}.refuse(op, gpuConflicts) }
