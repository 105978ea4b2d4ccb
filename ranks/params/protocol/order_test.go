package protocol

import (
	"math"
	"slices"
	"testing"

	"siafu/kernels"
)

// stepper is an optimiser of one flat vector.
type stepper struct {
	layers []Range
	opt    kernels.Optimizer
	state  [][]float32
}

func newAdam(t *testing.T, layers []Range) *stepper {
	t.Helper()
	o, err := kernels.NewOptimizer(kernels.OptimizerConfig{Name: "adam", LR: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	u := &stepper{layers: layers, opt: o}
	for range o.StateSlots() {
		u.state = append(u.state, make([]float32, layers[len(layers)-1].Hi))
	}
	return u
}

func (u *stepper) Update(step, layer int, w, g []float32) {
	var part [][]float32
	for _, s := range u.state {
		part = append(part, s[u.layers[layer].Lo:u.layers[layer].Hi])
	}
	u.opt.Step(step, w, g, part, false)
}

func (*stepper) State() [][]float32 { return nil }

// rounded returns a gradient whose sums depend on their order.
func rounded(interval, epoch, layer int, weights []float32) []float32 {
	r := twoLayers[layer]
	g := make([]float32, r.Hi-r.Lo)
	for i := range g {
		x := float64(weights[r.Lo+i]) + float64(31*interval+7*epoch+r.Lo+i)
		g[i] = float32(math.Sin(x) * math.Pow(10, float64(interval%5)))
	}
	return g
}

// inOrder trains one interval after the other with the weights of a synchronous run, in the
// order of doc.go: within a server ascending intervals, then ascending servers.
func inOrder(intervals, servers, epochs int, choose func(interval, epoch int) int, u Updater) []float32 {
	w := make([]float32, 5)
	for epoch := 1; epoch <= epochs; epoch++ {
		start := slices.Clone(w)
		for l, r := range twoLayers {
			var total []float32
			for k := range servers {
				var sum []float32
				for i := range intervals {
					if choose(i, epoch) == k {
						sum = plus(sum, rounded(i, epoch, l, start))
					}
				}
				total = plus(total, sum)
			}
			u.Update(epoch, l, w[r.Lo:r.Hi], total)
		}
	}
	return w
}

func plus(a, b []float32) []float32 {
	if a == nil || b == nil {
		return slices.Concat(a, b)
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// With s = 0 every version and every gradient is determined: runs could differ only by the
// order of sums.
func TestSumsDoNotDependOnDelivery(t *testing.T) {
	const epochs = 4
	for name, c := range map[string]Setting{
		"one server":    {Intervals: []int{3, 1, 4}, Servers: 1},
		"three servers": {Intervals: []int{2, 5, 1}, Servers: 3},
		"idle servers":  {Intervals: []int{2, 1}, Servers: 4},
	} {
		t.Run(name, func(t *testing.T) {
			choose := func(i, epoch int) int { return (i*i + epoch) % c.Servers }
			firsts := c.firsts()
			total := firsts[c.Graph()]
			want := inOrder(total, c.Servers, epochs, choose, newAdam(t, twoLayers))
			for seed := range uint64(30) {
				w := newCluster(t, c, twoLayers, epochs, seed, func() Updater { return newAdam(t, twoLayers) })
				w.grad = rounded
				w.choose = func(rank, i, epoch int) int { return choose(firsts[rank]+i, epoch) }
				if !w.run() {
					t.Fatal("deadlock")
				}
				for k, s := range w.servers {
					if !sameBits(s.Weights(), want) {
						t.Fatalf("seed %d, server %d: %v, want %v", seed, k, s.Weights(), want)
					}
				}
			}
		})
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// A synchronous run, with one interval per rank and fixed choices, adds up in one order for
// any delivery of messages.
func TestFixedChoices(t *testing.T) {
	const epochs, ranks = 6, 5
	for servers := 1; servers <= 3; servers++ {
		c := Setting{Intervals: slices.Repeat([]int{1}, ranks), Servers: servers, Fixed: true}
		choose := func(rank, _ int) int { return rank % servers }
		want := inOrder(ranks, servers, epochs, choose, newAdam(t, twoLayers))
		for seed := range uint64(10) {
			w := newCluster(t, c, twoLayers, epochs, seed, func() Updater { return newAdam(t, twoLayers) })
			w.grad = rounded
			if !w.run() {
				t.Fatal("deadlock")
			}
			for k, s := range w.servers {
				if !sameBits(s.Weights(), want) {
					t.Fatalf("%d servers, seed %d, server %d: %v, want %v", servers, seed, k, s.Weights(), want)
				}
			}
		}
	}
}

// One interval on one rank is a synchronous run for any bound: the same versions and final
// weights as the optimiser alone.
func TestOneIntervalIsSynchronous(t *testing.T) {
	const epochs = 6
	u, weights := newAdam(t, twoLayers), make([]float32, 5)
	var versions [][]float32
	for epoch := 1; epoch <= epochs; epoch++ {
		versions = append(versions, slices.Clone(weights))
		for l, r := range twoLayers {
			u.Update(epoch, l, weights[r.Lo:r.Hi], rounded(0, epoch, l, versions[epoch-1]))
		}
	}
	for s := range 3 {
		w := newCluster(t, Setting{Intervals: []int{1}, Servers: 1, Staleness: s}, twoLayers, epochs, 1,
			func() Updater { return newAdam(t, twoLayers) })
		w.grad = rounded
		w.taken = func(m Message) {
			if m.Version != m.Epoch || !sameBits(m.Values, versions[m.Epoch-1]) {
				t.Fatalf("s = %d: epoch %d starts from version %d, %v", s, m.Epoch, m.Version, m.Values)
			}
		}
		if !w.run() || !sameBits(w.servers[0].Weights(), weights) {
			t.Fatalf("s = %d: %v, want %v", s, w.servers[0].Weights(), weights)
		}
	}
}
