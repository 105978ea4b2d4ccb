package ranks

import (
	"bytes"
	"testing"

	"siafu/kernels"
)

// Every variant of the kernels leaves the model of plain Go, for networks that use all kinds of
// kernels. OpenBLAS has sums in another order, which differ by about 1e-7.
func TestModelIndependentOfKernels(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"gcn", "gat", "gatv2", "sage-max", "gcnii"} {
		data := generatedSmall(t, network == "gcn")
		run := func(t *testing.T, kernel string) trained {
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.Model, c.Kernel = 4, 1, 4, network, kernel
			return train(t, c, data)
		}
		want := run(t, "go")
		for _, kernel := range append(kernels.Variants(), "auto") {
			t.Run(network+"/"+kernel, func(t *testing.T) {
				got := run(t, kernel)
				if kernel == "openblas" {
					sameLosses(t, kernel, got.losses(), want.losses(), 1e-4)
				} else if !bytes.Equal(got.model, want.model) {
					t.Error("another model than with plain Go")
				}
			})
		}
	}
}

// The same on the features and edges of a real graph.
func TestModelIndependentOfKernelsOnCora(t *testing.T) {
	t.Parallel()
	data := real(t, "cora")
	reference := compared(t, 0.5)
	reference.Kernel = "go"
	if !bytes.Equal(train(t, compared(t, 0.5), data).model, train(t, reference, data).model) {
		t.Error("another model than with plain Go")
	}
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
