package ranks

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"siafu/kernels"
	"siafu/ranks/tensor"
)

// elsewhere is a backend that hands every task over to somebody who does it
// later, in an order of chance, as a pool of functions does.
type elsewhere struct {
	mu   sync.Mutex
	rng  *rand.Rand
	done []*tensor.Work
}

func (b *elsewhere) Begin(_ kernels.Ops, w *tensor.Work) (bool, error) {
	b.mu.Lock()
	pause := time.Duration(b.rng.IntN(200)) * time.Microsecond
	b.mu.Unlock()
	go func() {
		time.Sleep(pause)
		own := kernels.NewTeam(1)
		w.Ops.Borrow(own)
		tensor.Do(w)
		b.mu.Lock()
		b.done = append(b.done, w)
		b.mu.Unlock()
	}()
	return false, nil
}

func (b *elsewhere) Collect() (*tensor.Work, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.done) == 0 {
		return nil, nil
	}
	w := b.done[0]
	b.done = b.done[1:]
	return w, nil
}

// Whoever does the tensor tasks, and whenever, a synchronous run has the same
// losses to the last bit; and bounded asynchrony comes to an end.
func TestTensorTasksElsewhere(t *testing.T) {
	data := generated(t, true)
	for name, set := range map[string]func(*Config){
		"gcn":   func(*Config) {},
		"gat":   func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"async": func(c *Config) { *c = asynchronous(*c, 1, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 8, 3, 1, 4, 2
			set(&c)
			want := train(t, c, data)
			c.Out += "-elsewhere"
			got := trainOn(t, c, data, func(r *run) tensor.Backend {
				return &elsewhere{rng: rand.New(rand.NewPCG(1, uint64(r.world.Rank())))}
			})
			if name != "async" {
				sameLosses(t, name, got.losses(), want.losses(), 0)
			} else if len(got.losses()) != len(want.losses()) {
				t.Errorf("%d epochs, want %d", len(got.losses()), len(want.losses()))
			}
		})
	}
}
