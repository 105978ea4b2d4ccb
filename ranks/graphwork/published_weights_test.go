package graphwork

import (
	"slices"
	"testing"

	"siafu/kernels"
)

// Published edge weights are those of the interval that published last, also after its own
// weights change. They are absent if not needed.
func TestShownWeightsStay(t *testing.T) {
	ops := kernels.NewTeam(1)
	defer ops.Close()
	weights := func(x float32) kernels.Attention {
		return kernels.Attention{
			Vector: kernels.HostMat(1, 3, slices.Repeat([]float32{x}, 3)), Edge: kernels.HostMat(2, 3, slices.Repeat([]float32{-x}, 6)),
		}
	}
	check := func(what string, a kernels.Attention, x float32) {
		t.Helper()
		if want := weights(x); !slices.Equal(a.Vector.Host(), want.Vector.Host()) || !slices.Equal(a.Edge.Host(), want.Edge.Host()) {
			t.Errorf("%s: vector %v and edge %v, want those of %g", what, a.Vector.Host(), a.Edge.Host(), x)
		}
	}
	s := publishedWeights{vector: kernels.HostMat(1, 3, make([]float32, 3)), edge: kernels.HostMat(2, 3, make([]float32, 6))}
	i, mine := Interval{Ops: ops}, weights(1)
	s.publish(i, mine)
	mine.Vector.Host()[0], mine.Edge.Host()[0] = 7, 7
	check("behind the next epoch's", s.attach(weights(5)), 1)
	s.publish(i, weights(2))
	check("of the last", s.attach(weights(5)), 2)

	var none publishedWeights
	none.publish(i, weights(1))
	check("of a layer without", none.attach(weights(5)), 5)
}
