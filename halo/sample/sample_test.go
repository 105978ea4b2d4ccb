package sample_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo/sample"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

const vertices = 200

// member is a rank with its shard.
type member struct {
	world.Comm
	shard *shard.Shard
	team  *kernels.Team
	arena *mapped.Arena
	ds    *graph.Dataset
}

// together runs part on all ranks of a generated graph.
func together(t *testing.T, ranks int, directed bool, part func(m *member) error) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "planted")
	o := generate.Options{Vertices: vertices, Edges: 1500, Features: 4, Classes: 3, Seed: 5, Directed: directed}
	if _, err := generate.Write(data, o, false); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(data, partition.Options{Method: "hash", Parts: ranks, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	ds, err := graph.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	err = inproc.Run(ranks, func(c world.Comm) error {
		s, err := shard.Open(data, ranks, c.Rank())
		if err != nil {
			return err
		}
		defer s.Close()
		team, arena := kernels.NewTeam(2), mapped.NewArena()
		defer team.Close()
		defer arena.Free()
		return part(&member{c, s, team, arena, ds})
	})
	if err != nil {
		t.Error(err)
	}
}

// neighbours returns the neighbours of a vertex of the dataset, and itself with self.
func (m *member) neighbours(id uint32, self bool) []uint32 {
	list := slices.Clone(m.ds.In.Cols[m.ds.In.Offsets[id]:m.ds.In.Offsets[id+1]])
	if self {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// For any ownership, a field has at most the fanout of neighbours for every row, all of them
// different neighbours in the graph. Fetched rows equal the dataset's.
func TestNeighbours(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		for _, self := range []bool{false, true} {
			together(t, ranks, self, func(m *member) error {
				fanouts := []int{4, 100, 3}
				n, err := sample.NewNeighbours(sample.Options{Comm: m, Shard: m.shard, Seed: 2, Fanouts: fanouts,
					Self: self, Team: m.team}, m.arena)
				if err != nil {
					return err
				}
				x := kernels.HostMat(vertices, 4, make([]float32, vertices*4))
				for step := 1; step <= 3; step++ {
					f, err := n.Draw(step, []uint32{uint32(step), 9, uint32(step + 20)})
					if err != nil {
						return err
					}
					if err := n.Fetch(x); err != nil {
						return err
					}
					if f.Ends[3] != 3 || f.Ends[0] != len(f.Rows) || f.IDs[1] != m.shard.Own[9] {
						return fmt.Errorf("ends %v of %d rows", f.Ends, len(f.Rows))
					}
					if sent := n.TakeStats(); (sent.SentBytes > 0) != (ranks > 1) {
						return fmt.Errorf("%d bytes are sent by %d ranks", sent.SentBytes, ranks)
					}
					for l, fanout := range fanouts {
						if err := m.sampled(f, l, fanout, self); err != nil {
							return err
						}
					}
					for i, id := range f.IDs {
						want := m.ds.Features.Dense[4*id : 4*id+4]
						if in := uint32(len(m.neighbours(id, false))); f.InDegree[i] != in ||
							!slices.Equal(x.Part(i, i+1).Host()[:4], want) {
							return fmt.Errorf("vertex %d has degree %d and features %v, want %d and %v", id, f.InDegree[i],
								x.Part(i, i+1).Host(), in, want)
						}
					}
				}
				return nil
			})
		}
	}
}

// sampled compares a layer's edges with the graph.
func (m *member) sampled(f *sample.Field, l, fanout int, self bool) error {
	e := f.Layers[l]
	for i := range f.Ends[l+1] {
		all, got := m.neighbours(f.IDs[i], self), []uint32{}
		for _, at := range e.Sources[e.Offsets[i]:e.Offsets[i+1]] {
			got = append(got, f.IDs[at])
			if _, ok := slices.BinarySearch(all, f.IDs[at]); !ok || int(at) >= f.Ends[l] {
				return fmt.Errorf("layer %d: vertex %d samples %d, place %d, of %v", l, f.IDs[i], f.IDs[at], at, all)
			}
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != min(len(all), fanout) || float32(len(all))/float32(max(len(got), 1)) != e.Factor[i] {
			return fmt.Errorf("layer %d: vertex %d samples %v, %v times as heavy, of %v", l, f.IDs[i], got, e.Factor[i], all)
		}
	}
	return nil
}

// The mean of the weighted sum over samples is the sum over all neighbours (VR-GCN, ICML'18,
// section 2), for every vertex and any owners of its neighbours. The bound is 5 standard
// deviations of 4,000 steps, which the largest of 200 normal numbers exceeds with probability
// 1e-4.
func TestSumsAreUnbiased(t *testing.T) {
	const steps, fanout = 4000, 3
	value := func(id uint32) float64 { return math.Sin(1.7 * float64(id)) }
	together(t, 3, true, func(m *member) error {
		n, err := sample.NewNeighbours(sample.Options{Comm: m, Shard: m.shard, Seed: 3, Fanouts: []int{fanout},
			Self: true, Team: m.team}, m.arena)
		if err != nil {
			return err
		}
		var targets []uint32
		for v := range m.shard.Own {
			targets = append(targets, uint32(v))
		}
		sums, squares := make([]float64, len(targets)), make([]float64, len(targets))
		x := kernels.HostMat(vertices, 4, make([]float32, vertices*4))
		for step := 1; step <= steps; step++ {
			f, err := n.Draw(step, targets)
			if err != nil {
				return err
			}
			if err := n.Fetch(x); err != nil {
				return err
			}
			e := f.Layers[0]
			for i := range targets {
				z := 0.0
				for _, at := range e.Sources[e.Offsets[i]:e.Offsets[i+1]] {
					z += float64(e.Factor[i]) * value(f.IDs[at])
				}
				sums[i] += z
				squares[i] += z * z
			}
		}
		for i, id := range m.shard.Own {
			want, mean := 0.0, sums[i]/steps
			for _, u := range m.neighbours(id, true) {
				want += value(u)
			}
			deviation := math.Sqrt(max(squares[i]/steps-mean*mean, 0) / steps)
			if d := math.Abs(mean - want); d > 5*deviation+1e-6 {
				return fmt.Errorf("vertex %d: the mean is %.4f ± %.4f, want %.4f", id, mean, deviation, want)
			}
		}
		return nil
	})
}

// Joined clusters have exactly the edges between their vertices, and degrees count only these.
func TestClusters(t *testing.T) {
	for _, directed := range []bool{false, true} {
		together(t, 1, directed, func(m *member) error {
			const clusters = 5
			of := make([]uint32, vertices)
			for v := range of {
				of[v] = uint32(v * v % clusters)
			}
			c := sample.NewClusters(m.shard, 0, clusters, 2, sample.EdgeData{}, of, m.team, m.arena)
			x := kernels.HostMat(vertices, 4, make([]float32, vertices*4))
			for _, list := range [][]int{{1, 4}, {0}, {2}, {4, 3, 2, 1, 0}} {
				f := c.Join(list, x)
				var in []uint32
				for v, k := range of {
					if slices.Contains(list, int(k)) {
						in = append(in, m.shard.Own[v])
					}
				}
				if got := slices.Sorted(slices.Values(f.IDs)); !slices.Equal(got, slices.Sorted(slices.Values(in))) {
					return fmt.Errorf("clusters %v have vertices %v, want %v", list, got, in)
				}
				out := make([]uint32, len(f.IDs))
				for i, id := range f.IDs {
					want := slices.DeleteFunc(m.neighbours(id, false), func(u uint32) bool { return !slices.Contains(in, u) })
					var got []uint32
					for _, at := range f.Layers[1].Sources[f.Layers[1].Offsets[i]:f.Layers[1].Offsets[i+1]] {
						got, out[at] = append(got, f.IDs[at]), out[at]+1
					}
					if slices.Sort(got); !slices.Equal(got, want) || f.InDegree[i] != uint32(len(want)) {
						return fmt.Errorf("vertex %d gathers from %v with degree %d, want %v", id, got, f.InDegree[i], want)
					}
					if row := m.ds.Features.Dense[4*id : 4*id+4]; !slices.Equal(x.Part(i, i+1).Host()[:4], row) {
						return fmt.Errorf("vertex %d has features %v, want %v", id, x.Part(i, i+1).Host(), row)
					}
				}
				if !slices.Equal(out, f.OutDegree) {
					return fmt.Errorf("out-degrees %v, want %v", f.OutDegree, out)
				}
			}
			return nil
		})
	}
}

// Means over samples of normalised sums, and of weighted losses, are those over all own vertices
// (GraphSAINT, ICLR'20, section 3.2), up to the errors of the estimated probabilities: about 1/√Coverage for
// a vertex, a hundredth for their mean. Without weights, samples have 0.29 of the losses and half of the sums.
func TestWalksAreUnbiased(t *testing.T) {
	together(t, 2, true, func(m *member) error {
		w := sample.NewWalks(sample.WalkOptions{
			Shard: m.shard, Rank: m.Rank(), Seed: 4, Roots: 12, Length: 2, Layers: 1,
			EdgeData: sample.EdgeData{Weighted: true}, Normalise: true, Team: m.team,
		}, m.arena)
		const steps = 2000
		n := m.shard.NumOwn()
		var losses, sums, edges float64
		for step := 1; step <= steps; step++ {
			f := w.Draw(step, kernels.Mat{})
			for i := range f.Rows {
				losses += float64(f.LossWeights[i])
				if f.InStrength[i] == 0 {
					continue
				}
				for _, x := range f.Layers[0].Weights[f.Layers[0].Offsets[i]:f.Layers[0].Offsets[i+1]] {
					sums += float64(x) / float64(f.InStrength[i])
				}
				edges++
			}
		}
		for _, mean := range []float64{losses / (steps * float64(n)), sums / edges} {
			if math.Abs(mean-1) > 0.02 {
				return fmt.Errorf("means of losses %.3f and of sums %.3f, want 1", losses/(steps*float64(n)), sums/edges)
			}
		}
		return nil
	})
}

// An approximation has all own vertices and the requested fraction of each other rank's, and exactly the
// edges between them; the last layer gathers only for own vertices. Vertices of large degree are sampled
// more often: their mean degree is above the graph's.
func TestApproximate(t *testing.T) {
	for _, directed := range []bool{false, true} {
		together(t, 3, directed, func(m *member) error {
			const share = 0.3
			n, err := sample.NewNeighbours(sample.Options{Comm: m, Shard: m.shard, Seed: 2,
				Fanouts: []int{math.MaxInt32}, Team: m.team}, m.arena)
			if err != nil {
				return err
			}
			x := kernels.HostMat(vertices, 4, make([]float32, vertices*4))
			f, err := n.Approximate(share, 2, x)
			if err != nil {
				return err
			}
			own := m.shard.NumOwn()
			if others := float64(vertices - own); f.Ends[2] != own || !slices.Equal(f.IDs[:own], m.shard.Own) ||
				float64(len(f.Rows)-own) > share*others || float64(len(f.Rows)-own) < share*others-2 {
				return fmt.Errorf("layers end in rows %v, want %d, and %.1f of others", f.Ends, own, share*others)
			}
			degrees, out := 0.0, make([]uint32, len(f.IDs))
			for i, id := range f.IDs {
				want := slices.DeleteFunc(m.neighbours(id, false), func(u uint32) bool { return !slices.Contains(f.IDs, u) })
				var got []uint32
				for _, at := range f.Layers[0].Sources[f.Layers[0].Offsets[i]:f.Layers[0].Offsets[i+1]] {
					got, out[at] = append(got, f.IDs[at]), out[at]+1
				}
				if slices.Sort(got); !slices.Equal(got, want) || f.InDegree[i] != uint32(len(want)) {
					return fmt.Errorf("vertex %d gathers from %v with degree %d, want %v", id, got, f.InDegree[i], want)
				}
				if row := m.ds.Features.Dense[4*id : 4*id+4]; !slices.Equal(x.Part(i, i+1).Host()[:4], row) {
					return fmt.Errorf("vertex %d has features %v, want %v", id, x.Part(i, i+1).Host(), row)
				}
				if i >= own {
					for v := range uint32(vertices) {
						if slices.Contains(m.neighbours(v, false), id) {
							degrees++
						}
					}
				}
			}
			if last := f.Layers[1]; len(last.Offsets) != own+1 || len(last.Sources) != int(last.Offsets[own]) ||
				!slices.Equal(out, f.OutDegree) {
				return fmt.Errorf("%d offsets of own vertices, out-degrees %v, want %v", len(last.Offsets), f.OutDegree, out)
			}
			mean := degrees / float64(len(f.Rows)-own)
			if all := float64(len(m.ds.In.Cols)) / vertices; mean < 1.1*all {
				return fmt.Errorf("sampled vertices have degree %.1f, all %.1f", mean, all)
			}
			return nil
		})
	}
}
