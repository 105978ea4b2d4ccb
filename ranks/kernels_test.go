package ranks

import (
	"testing"

	"siafu/kernels"
)

// Every variant of the kernels trains like plain Go: a float32 sum in another order, or with
// fewer roundings, differs by about 1e-7.
func TestLossIndependentOfKernels(t *testing.T) {
	t.Parallel()
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		reference := compared(t, 0.5)
		reference.Kernel = "go"
		want := train(t, reference, data).losses()
		for _, kernel := range append(kernels.Variants(), "auto") {
			t.Run(kernel, func(t *testing.T) {
				c := compared(t, 0.5)
				c.Kernel = kernel
				sameLosses(t, kernel, train(t, c, data).losses(), want, 1e-4)
			})
		}
	}
}

// The same on the features and edges of a real graph.
func TestLossIndependentOfKernelsOnCora(t *testing.T) {
	t.Parallel()
	data := real(t, "cora")
	reference := compared(t, 0.5)
	reference.Kernel = "go"
	sameLosses(t, "cora", train(t, compared(t, 0.5), data).losses(), train(t, reference, data).losses(), 1e-4)
}

// Rows rounded to 8 bits of mantissa (relative error 2^-9) change the loss a little. Ranks
// agree on rounded rows as on exact ones, since each row is rounded where it is gathered.
func TestHalfGathersStayNear(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	exact := train(t, compared(t, 0), data).losses()
	c := compared(t, 0)
	c.Gather = "bf16"
	half := train(t, c, data).losses()
	sameLosses(t, "bf16", half, exact, 1e-2)
	if half[c.Epochs-1] == exact[c.Epochs-1] {
		t.Error("bf16 changes nothing at all")
	}
	c.Features = "bf16"
	half = train(t, c, data).losses()
	sameLosses(t, "bf16 features too", half, exact, 1e-2)
	c.Ranks, c.Servers, c.Out = 4, 1, c.Out+"4"
	// A gradient row that a rank sums from parts is rounded after another sum,
	// and may fall to the other side: one step of bfloat16 in few elements.
	sameLosses(t, "bf16 on 3 graph ranks", train(t, c, data).losses(), half, 1e-3)
}
