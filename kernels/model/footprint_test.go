package model

import (
	"fmt"
	"testing"

	"siafu/graph/mapped"
	"siafu/kernels"
)

// What a footprint says of any number of rows is what a network of so many
// rows takes.
func TestFootprint(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	for _, kind := range Kinds() {
		for _, sparse := range []bool{false, true} {
			for _, c := range []struct {
				order, cache string
				drop         float64
			}{{"auto", "off", 0}, {"gather-first", "off", 0.5}, {"apply-first", "off", 0.5}, {"auto", "on", 0}} {
				t.Run(fmt.Sprint(kind, " sparse=", sparse, " ", c), func(t *testing.T) {
					s := Spec{Kind: kind, Dims: []int{48, 32, 16}, Dropout: c.drop, InputDropout: c.drop, Heads: 2, OutputHeads: 3, AttentionDropout: c.drop}
					s.Choose(Load{FeatureNNZ: 1, CacheFits: true}, Choices{Order: c.order, CacheInput: c.cache})
					const rows = 5 * probe
					nonZeros := 0
					if sparse {
						nonZeros = 3 * rows
					}
					want, _ := s.measure(team, rows, nonZeros)
					f := s.Footprint(sparse)
					if got := f.Fixed + rows*f.PerRow + int64(nonZeros)*f.PerNonZero; got != want || f.PerRow <= 0 {
						t.Errorf("%d bytes, expected %d (%+v)", got, want, f)
					}
				})
			}
		}
	}
}

// The smallest network that there is, in numbers: a perceptron of one layer has
// its weights, their gradients, and the output.
func TestFootprintOfOneLayer(t *testing.T) {
	s := Spec{Kind: "mlp", Dims: []int{16, 16}}
	s.Choose(Load{}, Choices{Order: "auto"})
	f := s.Footprint(false)
	if f.PerRow != 4*16 || f.PerNonZero != 0 || f.Fixed != 2*4*(16*16+16) || f.Gathers[0] != (Gathering{}) {
		t.Errorf("%+v", f)
	}
	a := mapped.NewArena()
	defer a.Free()
	if mapped.Make[float32](a, 3); a.Used() != 64 {
		t.Errorf("3 floats take %d bytes", a.Used())
	}
}
