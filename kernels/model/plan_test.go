package model

import (
	"fmt"
	"slices"
	"testing"
)

// compose sets the widths of a network whose layers differ.
func (s *Spec) compose() {
	if s.Design.Hops, s.Design.Alpha, s.Design.Theta = 0, 0.2, 0.5; s.kind().Takes(OptionHops) || s.kind().Takes(OptionPowers) {
		s.Design.Hops = 3
	}
	if s.Composed() {
		s.Dims = s.Widths(s.Layers(), s.Dims[0], s.Dims[len(s.Dims)/2], s.Dims[s.Layers()])
	}
}

// specs returns networks of all kinds and orders, some deep, with and without input dropout
// and cached ÂX.
func specs() map[string]Spec {
	all := map[string]Spec{}
	for _, kind := range Kinds() {
		for _, order := range []string{"gather-first", "apply-first"} {
			for _, cache := range []string{"off", "on"} {
				for _, drop := range []float64{0, 0.5} {
					for _, dims := range [][]int{{48, 16}, {48, 32, 16}, {16, 32, 32, 32, 32, 32, 8}, {32, 32, 32, 32}} {
						s := Spec{Kind: kind, Dims: dims, Dropout: drop, InputDropout: drop, Heads: 2, OutputHeads: 3}
						s.compose()
						s.Choose(Load{FeatureNNZ: 1, CacheFits: true}, Choices{Order: order, CacheInput: cache})
						all[fmt.Sprint(kind, " ", order, " cache=", cache, " drop=", drop, " ", dims)] = s
						for _, d := range []Design{{Residual: "add"}, {Residual: "initial", Norm: "batch", Jumping: "cat"},
							{Residual: "add", Norm: "layer", Jumping: "max"}, {Norm: "l2"}} {
							if s.Composed() || cache == "on" || len(dims) != 7 || d.Norm == l2 && s.Attends() {
								continue
							}
							tailed := s
							tailed.Design, tailed.Dims = d, dims
							tailed.compose()
							tailed.Choose(Load{FeatureNNZ: 1}, Choices{Order: order, CacheInput: cache})
							all[fmt.Sprint(kind, " ", order, " drop=", drop, " ", d)] = tailed
						}
					}
				}
			}
		}
	}
	return all
}

// Every read gets the value that was written for it. This holds for an interval in order, and
// for one still in a gather while others are as far ahead as the next gather allows.
func TestValuesStand(t *testing.T) {
	for name, s := range specs() {
		for _, sparse := range []bool{false, true} {
			for _, m := range []Memory{InStep, Recompute, Forward, Separate} {
				n := New(s, sparse)
				p := newPlan(n, m)
				var dropped []Do
				for _, list := range p.recomputed {
					for _, d := range list {
						dropped = append(dropped, Do{Layer: d.Layer, Stage: d.Stage})
					}
				}
				if err := stands(p, p.repeat(p.makers(dropped))); err != nil {
					t.Errorf("%s sparse=%t memory=%d: %v", name, sparse, m, err)
				}
			}
		}
	}
}

// stands simulates events with the contents of each buffer.
func stands(p *plan, events []event) error {
	holds := map[int]ref{}
	buffer := func(e event, r ref) int {
		s, _ := p.find(e.phase(), r.layer, r.value)
		return s.buffer
	}
	for i, e := range events {
		if b, ok := idle(p, events, i); ok {
			if err := rests(p, events, i, b, buffer); err != nil {
				return err
			}
			holds[b] = ref{-1, 0}
		}
		for _, r := range slices.Concat(e.reads, e.shared) {
			if held := holds[buffer(e, r)]; held != r {
				return fmt.Errorf("event %d, %+v, reads %v, where %v lies", i, e.Do, r, held)
			}
		}
		if i > 0 && e.Stage >= Stages && p.gatherOnly[events[i-1].Do] {
			if err := spends(events, i, buffer); err != nil {
				return err
			}
			holds[buffer(e, e.shared[0])] = ref{-1, 0}
		}
		for _, r := range e.writes {
			holds[buffer(e, r)] = r
		}
		for _, r := range e.shared {
			for k := i + 1; k < len(events) && events[k].Stage < Stages; k++ {
				for _, w := range events[k].writes {
					if buffer(events[k], w) == buffer(e, r) && w != r {
						return fmt.Errorf("event %d, %+v, overwrites %v, which others may still gather in event %d", k, events[k].Do, r, i)
					}
				}
			}
		}
	}
	return nil
}

// idle returns the buffer that the plan offers for the gather of event i.
func idle(p *plan, events []event, i int) (buffer int, ok bool) {
	if i > 0 && events[i].Stage >= Stages {
		buffer, ok = p.idle[events[i-1].Do]
	}
	return buffer, ok
}

// rests returns an error if another event uses an idle buffer between the stage before the
// gather of event i, when the first intervals write, and the next gather, when the last ones
// read.
func rests(p *plan, events []event, i, idle int, buffer func(event, ref) int) error {
	for k := i - 1; k >= 0; k-- {
		for _, r := range events[k].shared {
			if events[k].Stage >= Stages && buffer(events[k], r) == idle {
				return fmt.Errorf("event %d offers what event %d may still gather", i, k)
			}
		}
		if events[k].Stage >= Stages {
			break
		}
	}
	for k := i; k < len(events) && (k == i || events[k].Stage < Stages); k++ {
		for _, r := range slices.Concat(events[k].reads, events[k].writes, events[k].shared) {
			if buffer(events[k], r) == idle {
				return fmt.Errorf("event %d offers what event %d uses", i, k)
			}
		}
	}
	return nil
}

// spends returns an error if another event reads the rows shared by the gather of event i
// after an interval may overwrite its own and before all have gathered.
func spends(events []event, i int, buffer func(event, ref) int) error {
	at := buffer(events[i], events[i].shared[0])
	for k := i - 2; k >= 0; k-- {
		if events[k].Stage < Stages {
			continue
		}
		for _, r := range events[k].shared {
			if buffer(events[k], r) == at {
				return fmt.Errorf("event %d spends what event %d may still gather", i, k)
			}
		}
		break
	}
	for k := i + 1; k < len(events) && events[k].Stage < Stages; k++ {
		for _, r := range slices.Concat(events[k].reads, events[k].writes) {
			if buffer(events[k], r) == at {
				return fmt.Errorf("event %d uses what event %d may still gather from where it has been overwritten", k, i)
			}
		}
	}
	return nil
}

// In networks of two layers, only the gather reads the rows at the start of the forward pass
// and the end of the backward pass: features with dropout, and the first layer's gradient.
// Outputs of ReLU are read again, because the backward pass needs their signs.
func TestSpent(t *testing.T) {
	s := Spec{Kind: "gcn", Dims: []int{16, 32, 8}, Dropout: 0.5, InputDropout: 0.5}
	emit, back := Do{Stage: Emit}, Do{Stage: ApplyBackward}
	for order, want := range map[string][]Do{"gather-first": {emit}, "apply-first": {emit, back}} {
		s.Choose(Load{FeatureNNZ: 1, CacheFits: true}, Choices{Order: order, CacheInput: "off"})
		n := New(s, false)
		spent := newPlan(n, InStep).gatherOnly
		for _, d := range want {
			if !spent[d] {
				t.Errorf("%s: %+v: rows are kept", order, d)
			}
		}
		if spent[Do{Layer: 1, Stage: Emit}] && order == "gather-first" {
			t.Errorf("%s: a hidden layer's output is spent", order)
		}
		if list := newPlan(n, Separate).gatherOnly; len(list) > 0 {
			t.Errorf("%s: spent beside intervals that go their own ways: %v", order, list)
		}
	}
}

// Deep networks have idle buffers for rows without zeros.
func TestIdle(t *testing.T) {
	s := Spec{Kind: "gcn", Dims: []int{16, 32, 32, 32, 8}, Dropout: 0.5}
	for order, stage := range map[string]Stage{"gather-first": Emit, "apply-first": ApplyBackward} {
		s.Choose(Load{FeatureNNZ: 1, CacheFits: true}, Choices{Order: order, CacheInput: "on"})
		n := New(s, false)
		if _, ok := newPlan(n, InStep).idle[Do{Layer: 1, Stage: stage}]; !ok {
			t.Errorf("%s: no room", order)
		}
		if list := newPlan(n, Separate).idle; len(list) > 0 {
			t.Errorf("%s: room beside intervals that go their own ways: %v", order, list)
		}
	}
}

// While an interval is still in one gather, others may have emitted the rows of the next: the
// two must be in different buffers.
func TestIdleOfGathersInTurn(t *testing.T) {
	met := 0
	for name, s := range specs() {
		for _, order := range []string{"gather-first", "apply-first"} {
			s.InputDropout = 0.5
			s.Choose(Load{FeatureNNZ: 1, CacheFits: true}, Choices{Order: order, CacheInput: "off"})
			p := newPlan(New(s, true), InStep)
			last := -1
			for i, e := range p.events {
				if e.Stage < Stages || i == 0 {
					continue
				}
				b, ok := p.idle[p.events[i-1].Do]
				if ok && b == last {
					t.Errorf("%s, %s: gathers of %+v and before have one room", name, order, p.events[i-1].Do)
				}
				if last = -1; ok {
					last, met = b, met+1
				}
			}
		}
	}
	if met == 0 {
		t.Error("no gather has room: nothing was tested")
	}
}

// Deep networks need less memory if values share buffers, and least with recomputation.
func TestMemory(t *testing.T) {
	for name, s := range specs() {
		n := New(s, false)
		apart, inStep, again, forward := newPlan(n, Separate).columns(), newPlan(n, InStep).columns(), newPlan(n, Recompute).
			columns(), newPlan(n, Forward).columns()
		if inStep > apart || again > inStep || forward > inStep {
			t.Errorf("%s: apart %d floats a vertex, in step %d, recomputed %d, forward %d", name, apart, inStep, again, forward)
		}
		if s.Layers() == 6 && (s.Kind == "gcn" && s.Orders[1] == GatherFirst || s.Kind == "gat" ||
			s.Kind == "gin" && s.Orders[1] == GatherFirst) && again >= inStep {
			t.Errorf("%s: %d floats a vertex, recomputed %d", name, inStep, again)
		}
	}
}
