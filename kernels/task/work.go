package task

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/internal/wire"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
)

// Work runs the task of a message, for the sender's network, and appends the result to reply.
// It frees its memory. codecs find the codecs that a message may name.
func Work(net *model.Network, message, reply []byte, o kernels.Ops, codecs ...Codecs) ([]byte, error) {
	return work(net, &messageParts{b: message}, reply, o, codecs)
}

// WorkFrom runs a task like Work, but reads the message from a stream. If the message has
// halves, initial stages that work row by row run on the first half while the second half is
// read (Dorylus, OSDI'21, §6: Lambda-internal streaming). The result is the same.
//
// WorkFrom reads exactly the message, and returns after reading has ended. r must end a wait
// with an error, like a connection with a deadline. Memory is proportional to the received
// bytes, by the widths of the network.
func WorkFrom(net *model.Network, r io.Reader, reply []byte, o kernels.Ops, codecs ...Codecs) ([]byte, error) {
	return work(net, &messageParts{r: r}, reply, o, codecs)
}

func work(net *model.Network, p *messageParts, reply []byte, o kernels.Ops, codecs []Codecs) (result []byte, err error) {
	defer mapped.Catch(&err)
	a := mapped.NewArena()
	defer a.Free()
	var find Codecs
	if len(codecs) > 0 {
		find = codecs[0]
	}
	j, err := newJob(net, p, o, a, find)
	if err != nil {
		return nil, err
	}
	part, err := p.next(j.maxBytes(j.first))
	if err != nil {
		return nil, err
	}
	if j.first < j.rows {
		second := p.ahead(j.maxBytes(j.rows - j.first))
		defer second() // no goroutine reads afterwards
		if err := j.readRows(part, 0, j.first); err != nil {
			return nil, err
		}
		j.run(0, j.first)
		if part, err = second(); err != nil {
			return nil, err
		}
	}
	if len(p.b) > 0 {
		return nil, errors.New("the message has data after its end")
	}
	return j.finish(part, reply)
}

// workItem is a received task.
type workItem struct {
	net   *model.Network
	ops   kernels.Ops
	arena *mapped.Arena

	task    Task
	only    int             // stages recomputed only for the task
	early   int             // stages that work row by row, before all others
	cut     model.Transfers // of all stages
	half    bool            // ÂX is in bfloat16
	weights kernels.Mat

	rows, first int
	store       *model.Store // of all rows; nil, like the fields below, before the first rows have arrived
	ids         []uint32
	features    graph.Features // of sparse ones the received part
	labels      []int32
	split       []uint8
}

// newJob reads the head of a message.
func newJob(net *model.Network, p *messageParts, o kernels.Ops, a *mapped.Arena, find Codecs) (*workItem, error) {
	r, err := p.next(maxHeadBytes(net))
	if err != nil {
		return nil, err
	}
	j := &workItem{net: net, ops: o, arena: a}
	j.task.Name, j.task.Version, j.half = r.name(), r.Number(), r.Flag()
	codec := string(r.Bytes(0, mostName))
	j.only = r.Number()
	j.task.Do = r.stages(net)
	if r.Err != nil || j.only < 0 || j.only > len(j.task.Do) {
		return nil, r.wrong("stages")
	}
	if j.task.Form.Codec, err = find.find(codec); err != nil {
		return nil, fmt.Errorf("a task with the codec %q: %w", codec, err)
	}
	j.rows, j.first = r.Number(), r.Number()
	if j.rows < 0 || j.rows > math.MaxUint32 || j.first < 0 || j.first > j.rows || j.first < j.rows-j.first {
		return nil, errors.Join(fmt.Errorf("a task of %d rows with a first half of %d", j.rows, j.first), r.Err)
	}
	switch kind := r.Number(); kind {
	case noLoss:
	case crossEntropy, ofObjective:
		j.task.Loss = &Loss{Scale: math.Float32frombits(uint32(r.Number())), Count: r.Flag()}
		if kind == ofObjective {
			j.task.Loss.Objective = r.objective(net.Spec.Dims[net.Spec.Layers()])
		}
	default:
		return nil, fmt.Errorf("a task with a loss of kind %d", kind)
	}
	if err := j.readWeights(r); err != nil {
		return nil, err
	}
	j.cut = net.Transfers(nil, j.task.Do, j.task.Pass())
	j.early = slices.IndexFunc(j.task.Do, func(d model.Do) bool { return !net.ByRow(d) })
	if j.early < 0 {
		j.early = len(j.task.Do)
	}
	return j, nil
}

// maxHeadBytes bounds the bytes of a task's head.
func maxHeadBytes(net *model.Network) int {
	const numbers = 32
	return size.Sum(8*(numbers+3*maxStages(net)+len(net.Layers)), mostName, maxObjectiveBytes(net.Spec.Dims[net.Spec.Layers()]),
		size.Product(4, net.Spec.NumWeights()))
}

// readWeights reads the weights of the stages' layers, the end of the head.
func (j *workItem) readWeights(r *reader) error {
	var all elements
	flat := kernels.NewMat(j.ops, j.arena, j.net.Spec.NumWeights(), 1)
	for _, part := range layers(j.net, j.task.Do) {
		dst := flat.Part(part.Lo, part.Hi)
		all = append(all, element{dst, r.Bytes(dst.Bytes(), dst.Bytes())})
	}
	if r.Err != nil || len(r.Rest) > 0 || j.task.hasLoss() != (j.task.Loss != nil) {
		return r.wrong("weights")
	}
	all.put(j.ops)
	j.weights = flat
	return nil
}

// maxBytes bounds the bytes of a part with the given rows.
func (j *workItem) maxBytes(rows int) int {
	value := func(cols int) int {
		n := size.Product(bytesOfFloat, rows, cols)
		if c := j.task.Form.Codec; c != nil {
			n = max(n, c.Most(rows, cols))
		}
		return n + front
	}
	const labels = 4 + 1
	sum := (bytesOfID+labels)*rows + 3*front
	switch dim := j.net.Spec.Dims[0]; {
	case j.cut.Features && j.net.Sparse:
		sum = size.Sum(sum, 8*(rows+1), size.Product(bytesOfID+bytesOfFloat, rows, dim), 2*front)
	case j.cut.Features:
		sum = size.Sum(sum, value(dim))
	}
	for _, r := range j.cut.Inputs {
		sum = size.Sum(sum, value(j.net.Width(r)))
	}
	if o := j.aim(); hasValues(o) {
		sum = size.Sum(sum, size.Product(bytesOfFloat, rows, o.Outputs), front)
	}
	return sum
}

const (
	bytesOfID    = 4
	bytesOfFloat = 4
)

// aim returns the objective of the task, nil without one.
func (j *workItem) aim() *objective.Objective {
	if j.task.Loss == nil {
		return nil
	}
	return j.task.Loss.Objective
}

// allocBuffers allocates memory for all rows.
func (j *workItem) allocBuffers() {
	j.store = j.net.Alone(j.task.Do, j.rows, j.half, j.ops, j.arena)
	j.ids = make([]uint32, j.rows)
	switch dim := j.net.Spec.Dims[0]; {
	case j.cut.Features && j.net.Sparse:
		j.features.Sparse = &graph.SparseRows{Offsets: []int64{0}}
	case j.cut.Features:
		j.features.Dense = make([]float32, j.rows*dim)
	}
	if j.task.Loss != nil {
		j.labels, j.split = make([]int32, j.rows), make([]uint8, j.rows)
	}
	if o := j.aim(); hasValues(o) {
		j.task.Loss.Values = make([]float32, j.rows*o.Outputs)
	}
}

// readRows reads rows [lo, hi), or none on error.
func (j *workItem) readRows(r *reader, lo, hi int) error {
	n, dim, c := hi-lo, j.net.Spec.Dims[0], j.task.Form.Codec
	ids := wire.Array[uint32](&r.Reader, n)
	if r.Err != nil {
		return r.wrong("vertices")
	}
	if j.store == nil { // half of the rows have arrived
		j.allocBuffers()
	}
	copy(j.ids[lo:], ids)
	switch {
	case j.cut.Features && j.net.Sparse:
		j.readSparse(r.sparse(n, dim))
	case j.cut.Features:
		copy(j.features.Dense[lo*dim:], r.decode(n, dim, c))
	}
	var values elements
	for _, ref := range j.cut.Inputs {
		dst := j.store.Value(ref).Part(lo, hi)
		values = append(values, element{dst, r.value(dst, c)})
	}
	if j.task.Loss != nil {
		copy(j.labels[lo:], wire.Array[int32](&r.Reader, n))
		copy(j.split[lo:], wire.Array[uint8](&r.Reader, n))
		r.classes(j.labels[lo:hi], j.split[lo:hi], j.net.Spec.Dims[j.net.Spec.Layers()])
	}
	if o := j.aim(); hasValues(o) {
		copy(j.task.Loss.Values[lo*o.Outputs:], wire.Array[float32](&r.Reader, n*o.Outputs))
	}
	if r.Err != nil || len(r.Rest) > 0 {
		return r.wrong("values")
	}
	values.put(j.ops)
	return nil
}

// readSparse appends the sparse features of rows to the received ones.
func (j *workItem) readSparse(x *graph.SparseRows) {
	all := j.features.Sparse
	before := all.Offsets[len(all.Offsets)-1]
	for _, at := range x.Offsets[1:] {
		all.Offsets = append(all.Offsets, before+at)
	}
	all.Cols, all.Vals = append(all.Cols, x.Cols...), append(all.Vals, x.Vals...)
}

// frame returns the frame of the received rows [lo, hi).
func (j *workItem) frame(lo, hi int) *model.Frame {
	dim := j.net.Spec.Dims[0]
	f := graph.Features{Rows: hi - lo, Dim: dim}
	if x := j.features.Sparse; x != nil {
		f.Sparse = &graph.SparseRows{Offsets: x.Offsets[lo : hi+1], Cols: x.Cols, Vals: x.Vals}
	} else if x := j.features.Dense; x != nil {
		f.Dense = x[lo*dim : hi*dim]
	}
	return j.store.On(model.Place(j.ops, j.arena, f, j.ids[lo:hi], nil), lo, j.task.Pass(), j.weights)
}

// run runs the early stages on the rows [lo, hi).
func (j *workItem) run(lo, hi int) {
	t := Task{Name: j.task.Name, Do: j.task.Do[:j.early]}
	if j.early > 0 {
		t.Frame = j.frame(lo, hi)
	}
	t.Run(j.ops)
}

// finish reads the last rows, completes the task, and appends the result.
func (j *workItem) finish(last *reader, reply []byte) ([]byte, error) {
	t, before := &j.task, 0
	if j.first < j.rows {
		before = j.first
	}
	if err := j.readRows(last, before, j.rows); err != nil {
		return nil, err
	}
	if before > 0 {
		j.run(before, j.rows)
	}
	t.Frame = j.frame(0, j.rows)
	t.Frame.Enter(t.Do, t.Pass())
	if t.Loss != nil {
		t.Loss.Labels, t.Loss.Split = kernels.Place(j.ops, j.arena, j.labels), kernels.Place(j.ops, j.arena, j.split)
	}
	late := *t
	if before > 0 {
		late.Do = t.Do[j.early:]
	}
	late.Run(j.ops)
	return t.result(j.net.Transfers(t.Do[:j.only], t.Do[j.only:], t.Pass()), reply, j.ops), nil
}
