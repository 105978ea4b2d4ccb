package config

import (
	"cmp"

	"siafu/kernels"
)

// KernelVariant returns the variant of the kernels: for --kernel auto the common one of the ranks, or this
// processor's best one before the ranks have agreed.
func (c *Config) KernelVariant() string {
	if c.Kernel != "auto" {
		return c.Kernel
	}
	return cmp.Or(c.CommonKernel, kernels.Best())
}

// RoundsProducts reports whether the dense products of layers round their operands to bfloat16.
func (c *Config) RoundsProducts() bool { return c.Products == "bf16" }
