package model

import (
	"fmt"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels"
)

// The footprint for any number of rows equals the memory of a network with that number.
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
					s := Spec{Kind: kind, Dims: []int{48, 32, 16}, Dropout: c.drop, InputDropout: c.drop, Heads: 2,
						OutputHeads: 3, AttentionDropout: c.drop}
					s.compose()
					s.Choose(Load{FeatureNNZ: 1, CacheFits: true}, Choices{Order: c.order, CacheInput: c.cache})
					const rows = 5 * probeRows
					nonZeros := 0
					if sparse {
						nonZeros = 3 * rows
					}
					want := worked(s, team, rows, nonZeros)
					f := s.Footprint(sparse, Separate)
					if got := f.Fixed + rows*f.PerRow + int64(nonZeros)*f.PerNonZero; got != want || f.PerRow <= 0 {
						t.Errorf("%d bytes, expected %d (%+v)", got, want, f)
					}
				})
			}
		}
	}
}

// worked returns the memory of a network with the given rows after an epoch.
func worked(s Spec, team *kernels.Team, rows, nonZeros int) int64 {
	work, rest := mapped.NewArena(), mapped.NewArena()
	defer work.Free()
	defer rest.Free()
	in := s.zeroVertices(team, rows, nonZeros, rest)
	NewRehearsal(s, in, team, work).Epoch(func() {})
	used := work.Used()
	if s.CacheInput {
		used -= int64(s.Powers().Cached()) * size.RoundUp(4*int64(rows*s.Dims[0]), 64)
	}
	return used
}

// The smallest network: a perceptron of one layer has its weights, their gradients, the output
// and its gradient.
func TestFootprintOfOneLayer(t *testing.T) {
	s := Spec{Kind: "mlp", Dims: []int{16, 16}}
	s.Choose(Load{}, Choices{Order: "auto"})
	f := s.Footprint(false, Separate)
	if f.PerRow != 2*4*16 || f.PerNonZero != 0 || f.Fixed != 2*4*(16*16+16) || f.Gathers[0] != (Gathering{}) {
		t.Errorf("%+v", f)
	}
	a := mapped.NewArena()
	defer a.Free()
	if mapped.Make[float32](a, 3); a.Used() != 64 {
		t.Errorf("3 floats take %d bytes", a.Used())
	}
}

// Sizes that overflow are estimated as size.Most, other large ones to the byte; neither takes
// memory or time.
func TestFootprintOfHugeNetworks(t *testing.T) {
	const huge = 2_000_000_000
	for name, tc := range map[string]struct {
		spec  Spec
		exact int64 // part independent of rows, 0 on overflow
	}{
		"wide":                {Spec{Kind: "mlp", Dims: []int{16, huge, 16}}, 2 * 4 * (16*huge + huge + huge*16 + 16)},
		"wider than a number": {Spec{Kind: "gcn", Dims: []int{16, huge, huge, huge, 16}}, 0},
		"wraps to nothing":    {Spec{Kind: "gcn", Dims: []int{16, 1 << 32, 1 << 32, 16}}, 0},
		"wider than memory":   {Spec{Kind: "sage", Dims: []int{16, 1 << 24, 1 << 24, 16}}, 2 * 4 * (2*(16<<24+1<<48+16<<24) + 2<<24 + 16)},
		"past all addresses":  {Spec{Kind: "sage", Dims: []int{16, 1 << 25, 1 << 25, 16}}, 0},
		"many classes":        {Spec{Kind: "gin", Dims: []int{16, 16, 70_000}}, 2 * 4 * (16*17 + 16*17 + 17*70_000 + 70_001*70_000)},
		"many heads":          {Spec{Kind: "gat", Dims: []int{16, size.Most, 16}, Heads: size.Most, OutputHeads: 1}, 0},
		"many heads at last":  {Spec{Kind: "gat", Dims: []int{16, 16, 16}, OutputHeads: size.Most / 8}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.spec
			s.Choose(Load{}, Choices{Order: "auto", CacheInput: "auto"})
			f := s.Footprint(false, Separate)
			if tc.exact == 0 && f.Fixed != size.Most || tc.exact != 0 && (f.Fixed < tc.exact || f.Fixed > tc.exact+1<<10) {
				t.Errorf("%d bytes, expected %d", f.Fixed, tc.exact)
			}
			if len(f.Gathers) != s.Layers() {
				t.Errorf("%d gathers", len(f.Gathers))
			}
		})
	}
}
