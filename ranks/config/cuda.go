package config

import "siafu/graph/fault"

// TensorCUDA is tensor work on GPUs, and GraphCUDA graph work there.
const (
	TensorCUDA = "cuda"
	GraphCUDA  = "cuda"
)

// checkCUDA refuses graph work elsewhere than tensor work that runs on GPUs, and their
// products without them.
//
// Design note: a gather on the processor reads rows that a GPU has made, and its sums
// go back there: an epoch would carry all activations over the bus several times.
func (c *Config) checkCUDA() error {
	onGPU := c.Tensor == TensorCUDA
	if !onGPU && c.CUDABLAS != "" && c.CUDABLAS != "auto" {
		return fault.New(fault.Usage, "train", "", "--cuda-blas=%s with --tensor=%s", c.CUDABLAS, c.Tensor).
			Then("it is about products on GPUs, which --tensor cuda asks for")
	}
	if c.GraphWork == "" || onGPU == (c.GraphWork == GraphCUDA) {
		return nil
	}
	e := fault.New(fault.Usage, "train", "", "--graph=%s with --tensor=%s", c.GraphWork, c.Tensor)
	if onGPU {
		return e.Then("leave --graph out: with tensor work on GPUs graph work runs there too, and nowhere else as yet")
	}
	return e.Then("graph work on GPUs needs --tensor cuda")
}
