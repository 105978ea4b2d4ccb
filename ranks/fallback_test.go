package ranks

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"siafu/kernels/task"
	"siafu/lambda/pool"
	"siafu/ranks/tensor"
)

// poor is a transport whose sends fail from one number to another, or until it is repaired.
type poor struct {
	chaos
	from, to int64 // sends that fail
	sends    atomic.Int64
	mended   atomic.Bool
	refuses  bool // fails at once; else reports the failure later
}

// Send implements tensor.Transport.
func (p *poor) Send(message []byte) error {
	switch n := p.sends.Add(1); {
	case n < p.from || n >= p.to || p.mended.Load():
		return p.chaos.Send(message)
	case p.refuses:
		return pool.NotStarted
	}
	name, err := task.NameOf(message)
	if err != nil {
		return err
	}
	go func() {
		select {
		case p.answers <- task.Answer{Failed: &task.Failure{Name: name, Err: errors.New("out of memory")}}:
		case <-p.ended:
		}
	}()
	return nil
}

// A run with failing functions continues on the CPU with the same bits, and uses functions
// again after they respond. It reports this, and does not keep invoking failing functions.
func TestTasksFallBackToTheCPU(t *testing.T) {
	t.Parallel()
	data := parted(t, generated(t, true))
	const never = 1 << 40
	partitionBy(t, data, "fennel", 1)
	for name, p := range map[string]struct {
		from, to int64
		refuses  bool
		mends    bool // after the CPU has taken over
	}{
		"never start":      {0, never, true, false},
		"always crash":     {0, never, false, false},
		"start after all":  {0, never, true, true},
		"fail on the way":  {30, never, true, false},
		"crash in between": {30, never, false, true},
		"fail once":        {20, 21, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := quick(t)
			c.Ranks, c.Servers, c.Intervals, c.Epochs, c.Threads = 1, 0, 4, 20, 2
			want := train(t, c, data)
			c.Out += "-elsewhere"
			s := patient(patience, 3)
			s.Breaker = pool.Breaker{Failures: 3, Rest: pool.Pause{First: time.Millisecond, Most: 2 * time.Millisecond}}
			var said []string
			var b *tensor.Remote
			way := &poor{from: p.from, to: p.to, refuses: p.refuses}
			got := trainOn(t, c, data, func(r *joined) tensor.Backend {
				var start sync.Once
				var other *process
				way.chaos.work = func(message []byte) []byte {
					start.Do(func() { other = startProcess(t, sentOf(r)) })
					return other.work(message)
				}
				way.chaos.answers, way.chaos.ended, way.chaos.rng = make(chan task.Answer), make(chan struct{}), newChaos(1, nil).rng
				b = tensor.NewRemote(way, wishes()[0], s, func(line string) {
					said = append(said, line)
					way.mended.Store(p.mends)
				})
				return b
			})
			if !bytes.Equal(got.model, want.model) {
				t.Error("the model is another one")
			}
			n := b.Counts().Pool
			t.Log(n, said)
			broken := p.to == never
			if opened := n.Opened > 0 && n.Local > 0 && len(said) > 0 &&
				strings.Contains(said[0], "the CPU takes over the work"); opened != broken {
				t.Errorf("the breaker has opened: %v", opened)
			}
			if broken && !p.mends && n.Invoked > n.Submitted/2+60 {
				t.Errorf("%d invocations for %d tasks, of functions that fail", n.Invoked, n.Submitted)
			}
			if p.mends && said[len(said)-1] != "the function responds again" {
				t.Error("functions that answer again are not used again")
			}
			if (p.mends || !broken) && n.Used == 0 {
				t.Error("no function has done anything")
			}
		})
	}
}
