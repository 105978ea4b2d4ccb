package ranks

import (
	"bytes"
	"testing"

	"siafu/kernels"
)

// Rounded products change the model, but losses stay near those of float32. All kernels give the same bits.
// Ranks differ from one rank only where another order of a sum moves a number to the next bfloat16.
func TestRoundedProducts(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	run := func(set func(*Config)) trained {
		c := compared(t, 0.3)
		c.Hidden, c.Products = 20, "bf16"
		set(&c)
		return train(t, c, data)
	}
	one := run(func(*Config) {})
	exact := run(func(c *Config) { c.Products = "float32" })
	sameLosses(t, "float32", one.losses(), exact.losses(), 1e-2)
	if bytes.Equal(one.model, exact.model) {
		t.Error("products are not rounded")
	}
	for _, kernel := range kernels.Variants() {
		if !kernels.SameBits(kernel, kernels.Best()) {
			continue
		}
		if got := run(func(c *Config) { c.Kernel = kernel }); !bytes.Equal(got.model, one.model) {
			t.Errorf("the model differs with --kernel %s", kernel)
		}
	}
	for _, ranks := range []int{2, 3} {
		got := run(func(c *Config) { c.Ranks, c.Servers = ranks, 0 })
		sameLosses(t, "ranks", got.losses(), one.losses(), 1e-3)
	}
}
