package model

import (
	"slices"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// Store is the memory of a network's values on the own vertices of a rank. Frames
// are the parts of it on which tasks work.
type Store struct {
	Network *Network
	Section Section // of the layers whose values have memory
	Rows    int     // own vertices

	input   Vertices
	ops     kernels.Ops
	arena   *mapped.Arena
	plan    *plan
	buffers []kernels.Mat // zero for those stored by worker
	slots   slots
	whole   [phases][][]kernels.Mat // by layer and value; absent if not stored
}

// Streamed is the purpose of the memory for values that intervals read and write in order
// (Spec.Streams).
const Streamed = "activations read in order"

// NewStore allocates the values of a network with the lifetimes of m. All memory comes from a.
func NewStore(n *Network, in Vertices, m Memory, ops kernels.Ops, a *mapped.Arena) *Store {
	return NewSectionStore(n, n.Section(), in, m, ops, a)
}

// NewSectionStore allocates the values of a section of a network, and the values that it receives from
// the layers before and after it. in needs features only if the section has the first layer. m is
// InStep, unless the section is the whole network. All memory comes from a.
func NewSectionStore(n *Network, of Section, in Vertices, m Memory, ops kernels.Ops, a *mapped.Arena) *Store {
	s := newStore(n, in, newSectionPlan(n, of, m), ops, a)
	s.Section = of
	return s
}

func newStore(n *Network, in Vertices, p *plan, ops kernels.Ops, a *mapped.Arena) *Store {
	s := &Store{Network: n, Section: n.Section(), Rows: in.Features.Rows, input: in.accepted(n, ops, a), ops: ops, arena: a, plan: p}
	for b, cols := range s.plan.widths {
		if s.plan.slotted[b] {
			s.buffers = append(s.buffers, kernels.Mat{})
			continue
		}
		home := a
		if s.plan.streamed[b] {
			home = a.For(Streamed)
		}
		s.buffers = append(s.buffers, kernels.NewMat(ops, home, s.Rows, cols))
	}
	for ph := range phases {
		s.whole[ph] = make([][]kernels.Mat, len(n.Layers))
		for l := range n.Layers {
			if ph == backward && !s.plan.moves(l) {
				s.whole[ph][l] = s.whole[forward][l]
				continue
			}
			s.whole[ph][l] = make([]kernels.Mat, n.values(l))
			for v := range n.values(l) {
				if span, ok := s.plan.find(ph, l, v); ok {
					s.whole[ph][l][v] = s.buffers[span.buffer]
					if s.plan.slotted[span.buffer] {
						s.slots.values = append(s.slots.values, slotValue{ph, l, v, span.buffer})
					}
				}
			}
		}
	}
	return s
}

// CacheInput allocates ÂX, or each cached one of Spec.Powers [own x in], in bfloat16 if half.
// The first layer then uses these instead of gathered rows. Spec.CacheInput must be set.
// Memory comes from a. Call it before the first Frame is made.
func (s *Store) CacheInput(half bool, a *mapped.Arena) (list []kernels.Mat) {
	f := s.input.Features
	for range s.Network.numCachedPowers(0) {
		list = append(list, NewInput(s.ops, f.Rows, f.Dim, half, a))
	}
	s.UseInput(list...)
	return list
}

// NewInput allocates rows of cached input, in bfloat16 if half.
func NewInput(ops kernels.Ops, rows, cols int, half bool, a *mapped.Arena) kernels.Mat {
	if half {
		return kernels.NewHalf(ops, a, rows, cols, 0)
	}
	return kernels.NewMat(ops, a, rows, cols)
}

// UseInput is CacheInput with given matrices, one per cached power.
func (s *Store) UseInput(list ...kernels.Mat) {
	for k, x := range list {
		for at := range s.whole {
			s.whole[at][0][CachedPower(k)] = x
		}
	}
}

// Memory returns the lifetime of values.
func (s *Store) Memory() Memory { return s.plan.memory }

// LocalIDs returns the dataset ids of own vertices and ghosts: the counters of attention
// dropout.
func (s *Store) LocalIDs() kernels.Vector[uint32] { return s.input.LocalIDs }

// Bytes returns the memory of the values on all own vertices, without those stored by worker.
func (s *Store) Bytes() int64 { return 4 * int64(s.plan.columns()) * int64(s.Rows) }

// Columns returns the number of floats per own vertex of a network's values, with the
// lifetimes of m.
func (n *Network) Columns(m Memory) int { return newPlan(n, m).columns() }

// Forward and Backward return the matrix of a value of layer l in the forward and backward
// pass [own x ·]. They return the zero Mat if the value has no matrix or is the features.
func (s *Store) Forward(l int, v Value) kernels.Mat  { return s.whole[forward][l][v] }
func (s *Store) Backward(l int, v Value) kernels.Mat { return s.whole[backward][l][v] }

// Export copies the first rows of all values, and Import restores them in a store of the same section.
func (s *Store) Export(rows int) (values [][]float32) {
	for _, b := range s.buffers {
		values = append(values, slices.Clone(kernels.Fetch(s.ops, b.Part(0, rows), new([]float32))))
	}
	return values
}

// Import is the opposite of Export.
func (s *Store) Import(rows int, values [][]float32) {
	for k, b := range s.buffers {
		kernels.Write(s.ops, b.Part(0, rows), values[k])
	}
}

// IdleRows returns an unused matrix that is as wide as the rows that layer l gathers after a stage,
// Emit or ApplyBackward. It returns the zero Mat if there is no such matrix. An interval may use its
// own rows of the matrix after the stage, until all intervals have gathered.
func (s *Store) IdleRows(l int, stage Stage) kernels.Mat {
	if b, ok := s.plan.idle[Do{Layer: l, Stage: stage}]; ok {
		return s.buffers[b]
	}
	return kernels.Mat{}
}

// GatherOnly returns the rows that layer l gathers after a stage, Emit or ApplyBackward, if only the
// gather reads them. Otherwise it returns the zero Mat. After the stage of a training pass, an
// interval may overwrite its own rows in a form that the gather can read.
func (s *Store) GatherOnly(l int, stage Stage) kernels.Mat {
	switch {
	case !s.plan.gatherOnly[Do{Layer: l, Stage: stage}]:
		return kernels.Mat{}
	case stage == Emit:
		return s.Forward(l, Emitted)
	}
	return s.Backward(l, GatheredGrad)
}

// Value returns the matrix of a value on all vertices.
func (s *Store) Value(r Ref) kernels.Mat {
	if r.Back {
		return s.Backward(r.Layer, r.Value)
	}
	return s.Forward(r.Layer, r.Value)
}

// Emitted returns the rows of layer l to gather in a forward pass [own x GatherWidth].
func (s *Store) Emitted(l int, p Pass) kernels.Mat {
	if l > 0 || s.Network.builders[0].places[Emitted].kind != inPlace {
		return s.Forward(l, Emitted)
	}
	if !s.input.Features.Dense.IsNil() && (!p.Train || s.Network.Spec.InputDropout == 0) {
		return s.input.Features.Dense
	}
	return s.Forward(0, Input)
}

// Do returns the stages of a task for a stage of layer l: the stages to recompute first, and
// the stage itself.
func (s *Store) Do(l int, stage Stage) []Do {
	at := Do{Layer: l, Stage: stage}
	list := slices.Clone(s.plan.recomputed[at])
	if l == 0 && stage == Emit && s.Network.draws() {
		list = append(list, Do{Layer: 0, Stage: Draw})
	}
	return append(list, at)
}

// Frame is the data of tasks: an interval of a rank's vertices, with its rows of all values.
type Frame struct {
	Network *Network
	// Weights and Grad are flat vectors [weights x 1] in the layout of Spec.Params.
	Weights, Grad kernels.Mat

	lo      int // the first of its vertices
	input   input
	own     [phases][][]kernels.Mat // by layer and value
	drawn   [phases]kernels.Mat     // the features with a pass's dropout
	scratch [][]kernels.Mat         // by layer
	slot    slot                    // nil: none
	sums    []kernels.Vector[float64]
	settled []kernels.Mat
	step    Step
}

// Frame returns the frame of own vertices [lo, hi). It shares weights, or allocates its own if
// none are given.
func (s *Store) Frame(lo, hi int, ops kernels.Ops, weights kernels.Mat) *Frame {
	return s.frame(s.input.part(lo, hi), lo, ops, weights)
}

// frame returns the frame of the vertices part, from lo on.
func (s *Store) frame(part Vertices, lo int, ops kernels.Ops, weights kernels.Mat) *Frame {
	f := s.newFrame(ops, weights)
	s.layOutFrame(f, part, lo, ops)
	return f
}

// newFrame allocates a frame's data that is independent of vertices: gradients, scratch and,
// unless given, weights.
func (s *Store) newFrame(ops kernels.Ops, weights kernels.Mat) *Frame {
	n := s.Network
	own := func() kernels.Mat { return kernels.NewMat(ops, s.arena, n.Spec.NumWeights(), 1) }
	if weights.IsNil() {
		weights = own()
	}
	f := &Frame{Network: n, Weights: weights, Grad: own()}
	for _, b := range n.builders {
		var list []kernels.Mat
		for _, shape := range b.scratch {
			list = append(list, kernels.NewMat(ops, s.arena, shape[0], shape[1]))
		}
		f.scratch = append(f.scratch, list)
		f.sums = append(f.sums, kernels.NewVector[float64](ops, s.arena, b.sums.columns))
		f.settled = append(f.settled, kernels.NewMat(ops, s.arena, b.sums.settled, 1))
	}
	return f
}

// layOutFrame sets a frame's matrices to the rows from lo on, for the vertices part.
func (s *Store) layOutFrame(f *Frame, part Vertices, lo int, ops kernels.Ops) {
	n, hi := s.Network, lo+part.Features.Rows
	f.lo, f.input = lo, input{Vertices: part, drop: n.Spec.dropout(0, n.Spec.InputDropout)}
	if x := part.Features.Sparse; x != nil && s.transposes() {
		f.input.transposed = kernels.NewTransposed(ops, s.arena, *x, part.Features.Dim)
	}
	for at, layers := range s.whole {
		f.own[at] = make([][]kernels.Mat, len(layers))
		for l, list := range layers {
			if phase(at) == backward && &list[0] == &s.whole[forward][l][0] {
				f.own[at][l] = f.own[forward][l]
				continue
			}
			f.own[at][l] = make([]kernels.Mat, len(list))
			for v, m := range list {
				if !m.IsNil() {
					f.own[at][l][v] = m.Part(lo, hi)
				}
			}
		}
		f.drawn[at] = f.own[at][0][Input]
	}
	f.enter(part.Features.Dense, forward)
	f.step.frame = f
}

// transposes reports whether the backward pass multiplies by the transpose of sparse
// features.
func (s *Store) transposes() bool {
	stages, n := []Stage{ApplyBackward, EmitBackward}, s.Network
	if s.plan.memory == Emission {
		at := n.Spec.GhostLayer()
		if !n.GathersBackward(at) {
			return false
		}
		if at == 0 {
			stages = stages[1:]
		}
	} else if s.plan.memory == Forward {
		return false
	}
	return slices.ContainsFunc(stages, func(at Stage) bool { return slices.Contains(n.Layers[0].Flow(at).Reads, Input) })
}

// At returns the frame's rows of a value of d's layer, in the phase of d.
func (f *Frame) At(d Do, v Value) kernels.Mat { return f.own[d.phase()][d.Layer][v] }

// Rows returns the number of vertices.
func (f *Frame) Rows() int { return f.input.Features.Rows }

// LayerGrad returns the part [· x 1] of Grad that belongs to layer l.
func (f *Frame) LayerGrad(l int) kernels.Mat {
	r := f.Network.ranges[l]
	return f.Grad.Part(r.Lo, r.Hi)
}

// Sums returns the sums over the frame's vertices in layer l, and Settled [· x 1] the values
// that stages read, computed from the sums of all ranks. Both are empty if the layer is not
// Summing.
func (f *Frame) Sums(l int) kernels.Vector[float64] { return f.sums[l] }
func (f *Frame) Settled(l int) kernels.Mat          { return f.settled[l] }

// Run runs a stage, Loss excepted, on the kernels of ops.
func (f *Frame) Run(d Do, p Pass, ops kernels.Ops) {
	x := &f.step
	x.Ops, x.Pass, x.layer, x.values = ops, p, d.Layer, f.own[d.phase()][d.Layer]
	if d.Stage == Draw {
		f.draw(d, x)
		return
	}
	if skip := x.At(skipGrad); d.Stage == ApplyBackward && f.Network.skipped[d.Layer] && !skip.IsNil() { // ghosts have none
		ops.Add(x.At(OutputGrad), skip)
	}
	f.Network.Layers[d.Layer].Run(d.Stage, x)
}

// Enter sets the storage of the first layer's input, if the stages draw it.
func (f *Frame) Enter(list []Do, p Pass) {
	for _, d := range list {
		if d.Stage != Draw {
			continue
		}
		rows := f.drawn[d.phase()]
		if features := &f.input.Features; features.Sparse == nil && !f.Network.masks(p) {
			rows = features.Dense
		}
		f.enter(rows, d.phase())
	}
}

// ClearGathered sets the gradients of layer l that EmitBackward reads to zero, except EmittedGrad,
// for vertices that emit rows there but gather nothing. It also clears the gradients of Skips to
// earlier layers. Gradients without storage are ignored.
func (f *Frame) ClearGathered(l int, ops kernels.Ops) {
	clear := func(layer int, list ...Value) {
		for _, v := range list {
			if grad := f.At(Do{Layer: layer, Stage: EmitBackward}, v); !grad.IsNil() {
				ops.Clear(grad)
			}
		}
	}
	for _, v := range []Value{OutputGrad, ScoresGrad, AlongGrad} {
		if slices.Contains(f.Network.Layers[l].Flow(EmitBackward).Reads, v) {
			clear(l, v)
		}
	}
	for k := range l {
		clear(k, skipGrad)
	}
}

// masks reports whether a pass has dropout of features.
func (n *Network) masks(p Pass) bool { return p.Train && n.Spec.InputDropout > 0 }

// draw computes the value Input of the first layer: the features as a dense matrix with the
// pass's dropout, or the features themselves if they need no change.
func (f *Frame) draw(d Do, x *Step) {
	features, mask := &f.input.Features, x.Mask(f.input.drop)
	one := [1]Do{d}
	f.Enter(one[:], x.Pass)
	switch {
	case features.Sparse != nil:
		x.Ops.SparseToDense(x.At(Input), *features.Sparse, mask)
	case mask != nil:
		x.Ops.DropoutRows(x.At(Input), features.Dense, mask)
	}
}

// enter makes rows the first layer's input, and sets other values that share its storage. If
// it is drawn only forward, it is the backward pass's input too.
func (f *Frame) enter(rows kernels.Mat, at phase) {
	if rows.IsNil() { // not read
		return
	}
	for v := range values {
		if r, _ := f.Network.root(0, v); r != (ref{0, Input}) {
			continue
		}
		f.own[at][0][v] = rows
		if at == forward && f.drawn[forward] == f.drawn[backward] {
			f.own[backward][0][v] = rows
		}
	}
}

// InputColumns sets dst [n x w] to columns [from, from+w) of X, without dropout.
func (f *Frame) InputColumns(dst kernels.Mat, from int, ops kernels.Ops) {
	if x := f.input.Features.Sparse; x != nil {
		ops.SpreadColumns(dst, from, *x)
		return
	}
	ops.CopyColumns(dst, f.input.Features.Dense, from)
}
