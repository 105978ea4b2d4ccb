package ranks

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/lambda/pool"
	"siafu/ranks/tensor"
)

// early is a transport that can begin attempts before their tasks arrive, and records the
// order. If moody, it refuses some early attempts, and fails others before their task arrives.
type early struct {
	*chaos
	moody bool
	kept  bool // ÂX is cached, so the first layer has no graph work

	mu     sync.Mutex
	aheads int
	begun  map[task.Name]bool // attempts, until they are sent
	ahead  map[task.Name]int  // by layer, stage and attempt: tasks sent to a begun attempt
	sudden map[task.Name]int  // and tasks sent without one
	wrong  []task.Name        // begun twice, or sent after they had failed
}

// InvokeAhead implements tensor.AheadInvoker.
func (e *early) InvokeAhead(name task.Name) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun[name] {
		e.wrong = append(e.wrong, name)
	}
	e.aheads++
	switch {
	case e.moody && e.aheads%7 == 0:
		return pool.Throttled
	case e.moody && e.aheads%5 == 0:
		go func() {
			select {
			case e.answers <- task.Answer{Failed: &task.Failure{Name: name, Err: pool.Crashed}}:
			case <-e.ended:
			}
		}()
	}
	e.begun[name] = true
	return nil
}

// Send implements tensor.Transport.
func (e *early) Send(message []byte) error {
	name, err := task.NameOf(message)
	if err != nil {
		return err
	}
	e.mu.Lock()
	kind := task.Name{Layer: name.Layer, Stage: name.Stage, Train: name.Train, Attempt: name.Attempt}
	if e.begun[name] {
		e.ahead[kind]++
	} else {
		e.sudden[kind]++
	}
	delete(e.begun, name)
	e.mu.Unlock()
	return e.chaos.Send(message)
}

// "Dorylus launches n Lambda threads, preparing them for AV when n GA tasks start to run."
// (OSDI'21, §6) The attempt of every tensor task after graph work begins before the task is
// sent. No other attempt begins early, and none is left unused. The bits equal the CPU's, also
// if early attempts fail.
func TestInvocationsAhead(t *testing.T) {
	t.Parallel()
	data := parted(t, generated(t, true))
	for name, set := range map[string]func(*Config){
		"gcn on one rank":   func(c *Config) { c.Ranks, c.Layers = 1, 3 },
		"gcn on two":        func(c *Config) { c.Layers = 3 },
		"gat, nopipe":       func(c *Config) { c.Model, c.Heads, c.Mode = "gat", 2, "nopipe" },
		"sums of ghosts":    func(c *Config) { c.PreAggregate = "on" },
		"computed ghosts":   func(c *Config) { c.RecomputeGhosts, c.Layers = "layers:2", 3 },
		"some computed":     func(c *Config) { c.RecomputeGhosts, c.Layers, c.PreAggregate = "layers:1.5", 3, "on" },
		"ÂX kept":           func(c *Config) { c.Dropout = 0 },
		"async on one rank": func(c *Config) { *c = asynchronous(*c, 0, 1); c.Ranks, c.Servers = 1, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := quick(t)
			c.Epochs, c.Ranks, c.Servers, c.Intervals, c.EvalEvery, c.RecomputeGhosts = 3, 2, 0, 3, 2, "none"
			set(&c)
			want := train(t, c, data)
			for _, moody := range []bool{false, true} {
				var mu sync.Mutex
				var ways []*early
				var start sync.Once
				var other *process
				c := c
				c.Out += "-ahead"
				got := trainOn(t, c, data, func(r *joined) tensor.Backend {
					mu.Lock()
					defer mu.Unlock()
					w := &early{chaos: newChaos(uint64(len(ways)), nil), moody: moody, kept: c.Dropout == 0, begun: map[task.Name]bool{},
						ahead: map[task.Name]int{}, sudden: map[task.Name]int{}}
					// Failures and late attempts reduce the attempts that may wait: then none begin early.
					limit := patience
					if w.calm = !moody; w.calm {
						limit = time.Minute
					}
					w.work = func(message []byte) []byte {
						start.Do(func() { other = startProcess(t, sentOf(r)) })
						return other.work(message)
					}
					ways = append(ways, w)
					return tensor.NewRemote(w, wishes()[0], patient(limit, 100), silence)
				})
				if !bytes.Equal(got.model, want.model) {
					t.Errorf("moody %t: the model differs", moody)
				}
				for _, w := range ways {
					w.check(t)
				}
			}
		})
	}
}

// check compares what was begun with what was sent.
func (e *early) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.wrong) > 0 {
		t.Errorf("begun twice: %v", e.wrong)
	}
	seen := 0
	for kind, n := range e.sudden {
		behind := kind.Stage == model.EmitBackward || kind.Stage == model.Apply && !(e.kept && kind.Layer == 0)
		if !e.moody && behind && kind.Attempt == 1 {
			t.Errorf("%d of %v are sent without a function", n, kind)
		}
	}
	for kind, n := range e.ahead {
		if kind.Stage != model.Apply && kind.Stage != model.EmitBackward || kind.Attempt != 1 {
			t.Errorf("%d of %v are begun ahead", n, kind)
		}
		seen += n
	}
	if seen == 0 || e.aheads < seen || !e.moody && (e.aheads != seen || len(e.begun) > 0) {
		t.Errorf("%d attempts are begun, %d of them sent, %d left", e.aheads, seen, len(e.begun))
	}
}
