package task

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"unsafe"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// A task travels as bytes, little-endian, in front of a checksum (CRC-32C, 4 bytes):
//
//	name      part, interval, epoch, layer, stage, attempt, train: 8 bytes each
//	version   of the weights; 1 where ÂX is kept in bfloat16
//	stages    how many are made again for the task alone, which come first; the number
//	          of all, and of each layer, stage and again
//	weights   of the layers of the stages
//	vertices  rows, dimension, kind of features (0 none, 1 dense, 2 sparse), dataset
//	          ids, and the features: their elements, or offsets, columns and values
//	values    of model.Cut.Inputs in their order: the elements
//	loss      1 where there is one: labels, split, scale, whether hits are counted
//
// A result is the name, the values of Cut.Outputs and the gradients of Cut.Grads in
// their order, and what the loss has found. Numbers are 8 bytes long; arrays have the
// number of their bytes in front, which must be the one that is expected.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode appends the task. o reads its values.
func (t *Task) Encode(b []byte, o kernels.Ops) []byte {
	w := writer{b: b, from: len(b), ops: o}
	net, v, before := t.Frame.Network, t.Frame.Vertices(), t.Thin
	t.Frame.Enter(t.Do, t.Pass())
	cut := net.Cut(before, t.Do, t.Pass())
	w.name(t.Name)
	w.number(t.Version)
	w.flag(slices.ContainsFunc(cut.Inputs, func(r model.Ref) bool { return t.Frame.Value(r).Half() }))
	w.number(len(before))
	w.number(len(before) + len(t.Do))
	for _, d := range slices.Concat(before, t.Do) {
		w.number(d.Layer)
		w.number(int(d.Stage))
		w.flag(d.Again)
	}
	for _, r := range layers(net, before, t.Do) {
		w.mat(t.Frame.Weights.Part(r.Lo, r.Hi))
	}
	w.vertices(v, cut.Features)
	w.values(t.Frame, cut.Inputs)
	w.flag(t.hasLoss())
	if t.hasLoss() {
		w.bytes(mapped.Bytes(kernels.FetchVector(o, t.Loss.Labels)))
		w.bytes(kernels.FetchVector(o, t.Loss.Split))
		w.number(int(math.Float32bits(t.Loss.Scale)))
		w.flag(t.Loss.Count)
	}
	return w.end()
}

func (t *Task) hasLoss() bool {
	return slices.ContainsFunc(t.Do, func(d model.Do) bool { return d.Stage == model.Loss })
}

// layers are the parts of the weights that stages use, in order.
func layers(net *model.Network, lists ...[]model.Do) (used []model.Range) {
	for l, r := range net.Spec.LayerRanges() {
		if slices.ContainsFunc(slices.Concat(lists...), func(d model.Do) bool { return d.Layer == l }) {
			used = append(used, r)
		}
	}
	return used
}

// Work does the task of a message, for a network that the sender has too, and
// appends the result. Its memory is freed.
func Work(net *model.Network, message, reply []byte, o kernels.Ops) ([]byte, error) {
	a := mapped.NewArena()
	defer a.Free()
	r, err := open(message)
	if err != nil {
		return nil, err
	}
	t := Task{Name: r.name(), Version: r.number()}
	half, only := r.flag(), r.number()
	list := r.stages(net)
	if r.err != nil || only < 0 || only > len(list) {
		return nil, r.wrong("stages")
	}
	var weights [][]byte
	ranges := layers(net, list)
	for _, part := range ranges {
		weights = append(weights, r.bytes(4*(part.Hi-part.Lo)))
	}
	in := r.vertices(net, o, a)
	if r.err != nil {
		return nil, r.wrong("vertices")
	}
	t.Do, t.Frame = list, net.Alone(list, t.Pass(), in, half, o, a)
	for i, part := range ranges {
		upload(o, t.Frame.Weights.Part(part.Lo, part.Hi), weights[i])
	}
	values := r.values(t.Frame, net.Cut(nil, list, t.Pass()).Inputs)
	if r.flag() {
		rows := in.Features.Rows
		t.Loss = &Loss{Labels: vector[int32](r, o, a, rows), Split: vector[uint8](r, o, a, rows)}
		t.Loss.Scale, t.Loss.Count = math.Float32frombits(uint32(r.number())), r.flag()
	}
	if r.err != nil || len(r.b) > 0 || t.hasLoss() != (t.Loss != nil) {
		return nil, r.wrong("values")
	}
	values.put(o)
	t.Run(o)
	return t.result(net.Cut(list[:only], list[only:], t.Pass()), reply, o), nil
}

// result appends what a task has made.
func (t *Task) result(cut model.Cut, b []byte, o kernels.Ops) []byte {
	w := writer{b: b, from: len(b), ops: o}
	w.name(t.Name)
	w.values(t.Frame, cut.Outputs)
	for _, p := range cut.Grads {
		w.mat(p.In(t.Frame.Grad))
	}
	if t.hasLoss() {
		w.number(int(math.Float64bits(t.Loss.Sum)))
		w.number(int(math.Float64bits(t.Loss.ValSum)))
		for k := range t.Loss.Correct {
			w.number(int(t.Loss.Correct[k]))
			w.number(int(t.Loss.Total[k]))
		}
	}
	return w.end()
}

// NameOf is the name in front of a result.
func NameOf(reply []byte) (Name, error) {
	r, err := open(reply)
	if err != nil {
		return Name{}, err
	}
	return r.name(), r.err
}

// Accept takes over a result of the task. A result that is damaged or of another
// task changes nothing.
func (t *Task) Accept(reply []byte, o kernels.Ops) error {
	r, err := open(reply)
	if err != nil {
		return err
	}
	if name := r.name(); r.err != nil || name.Of() != t.Name.Of() {
		return fmt.Errorf("a result of %s for %s", name, t.Name)
	}
	cut := t.Frame.Network.Cut(nil, t.Do, t.Pass())
	values := r.values(t.Frame, cut.Outputs)
	for _, p := range cut.Grads {
		values = append(values, element{p.In(t.Frame.Grad), r.bytes(4 * p.Len())})
	}
	var found Found
	if t.hasLoss() {
		found.Sum, found.ValSum = math.Float64frombits(uint64(r.number())), math.Float64frombits(uint64(r.number()))
		for k := range found.Correct {
			found.Correct[k], found.Total[k] = int64(r.number()), int64(r.number())
		}
	}
	if r.err != nil || len(r.b) > 0 {
		return r.wrong("result")
	}
	values.put(o)
	if t.hasLoss() {
		t.Loss.Found = found
	}
	return nil
}

// writer appends a message.
type writer struct {
	b    []byte
	from int
	ops  kernels.Ops
}

func (w *writer) number(n int) { w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n)) }

func (w *writer) flag(v bool) {
	if v {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *writer) bytes(x []byte) {
	w.number(len(x))
	w.b = append(w.b, x...)
}

// mat appends the elements of a matrix, behind the number of its bytes.
func (w *writer) mat(x kernels.Mat) {
	n := x.Bytes()
	w.number(n)
	w.b = slices.Grow(w.b, n)
	w.b = w.b[:len(w.b)+n]
	if n > 0 {
		w.ops.Download(w.b[len(w.b)-n:], x.Address())
	}
}

func (w *writer) name(n Name) {
	for _, x := range []int{n.Part, n.Interval, n.Epoch, n.Layer, int(n.Stage), n.Attempt} {
		w.number(x)
	}
	w.flag(n.Train)
}

func (w *writer) vertices(v model.Vertices, features bool) {
	f := v.Features
	w.number(f.Rows)
	w.number(f.Dim)
	kind := 0
	switch {
	case features && f.Sparse != nil:
		kind = sparse
	case features:
		kind = dense
	}
	w.number(kind)
	w.bytes(mapped.Bytes(kernels.FetchVector(w.ops, v.IDs)))
	switch kind {
	case dense:
		w.mat(f.Dense)
	case sparse:
		rows := f.Sparse.Source
		lo, hi := rows.Offsets[0], rows.Offsets[len(rows.Offsets)-1]
		for _, at := range rows.Offsets {
			w.number(int(at - lo))
		}
		w.bytes(mapped.Bytes(rows.Cols[lo:hi]))
		w.bytes(mapped.Bytes(rows.Vals[lo:hi]))
	}
}

// Kinds of features in a message.
const (
	none = iota
	dense
	sparse
)

func (w *writer) values(f *model.Frame, list []model.Ref) {
	for _, ref := range list {
		w.mat(f.Value(ref))
	}
}

// end appends the checksum.
func (w *writer) end() []byte {
	return binary.LittleEndian.AppendUint32(w.b, crc32.Checksum(w.b[w.from:], castagnoli))
}

// reader takes a message apart. After the first mistake it gives zeros.
type reader struct {
	b   []byte
	err error
}

// open checks a message's checksum.
func open(b []byte) (*reader, error) {
	at := len(b) - crc32.Size
	if at < 0 || crc32.Checksum(b[:at], castagnoli) != binary.LittleEndian.Uint32(b[at:]) {
		return nil, fmt.Errorf("a message of %d bytes is damaged: its checksum does not fit", len(b))
	}
	return &reader{b: b[:at]}, nil
}

// wrong is the error of a message that is not what it should be.
func (r *reader) wrong(what string) error {
	return errors.Join(fmt.Errorf("the %s of a task are not those of this network", what), r.err)
}

func (r *reader) number() int {
	if r.err != nil || len(r.b) < 8 {
		r.err = cmp.Or(r.err, io.ErrUnexpectedEOF)
		return 0
	}
	n := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return int(n)
}

func (r *reader) flag() bool { return r.number() == 1 }

// bytes are an array of n bytes.
func (r *reader) bytes(n int) []byte {
	if got := r.number(); r.err == nil && (got != n || n > len(r.b)) {
		r.err = fmt.Errorf("an array has %d bytes, want %d", got, n)
	}
	if r.err != nil {
		return nil
	}
	x := r.b[:n]
	r.b = r.b[n:]
	return x
}

func (r *reader) name() Name {
	n := Name{Part: r.number(), Interval: r.number(), Epoch: r.number(), Layer: r.number()}
	n.Stage, n.Attempt, n.Train = model.Stage(r.number()), r.number(), r.flag()
	return n
}

// stages are those of a message, all of which the network has.
func (r *reader) stages(net *model.Network) (list []model.Do) {
	for range min(r.number(), len(r.b)/24) {
		d := model.Do{Layer: r.number(), Stage: model.Stage(r.number()), Again: r.flag()}
		if !net.Has(d) {
			r.err = cmp.Or(r.err, fmt.Errorf("there is no stage %d of layer %d", d.Stage, d.Layer))
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		r.err = cmp.Or(r.err, errors.New("there is no stage"))
	}
	return list
}

func (r *reader) vertices(net *model.Network, o kernels.Ops, a *mapped.Arena) model.Vertices {
	f := graph.Features{Rows: r.number(), Dim: r.number()}
	kind := r.number()
	if r.err != nil || f.Rows < 0 || f.Rows > len(r.b) || f.Dim != net.Spec.Dims[0] || kind != none && (kind == sparse) != net.Sparse {
		r.err = cmp.Or(r.err, fmt.Errorf("%d vertices with %d features of kind %d", f.Rows, f.Dim, kind))
		return model.Vertices{}
	}
	ids := array[uint32](r, f.Rows)
	switch kind {
	case dense:
		f.Dense = array[float32](r, f.Rows*f.Dim)
	case sparse:
		f.Sparse = r.sparse(f.Rows, f.Dim)
	}
	if r.err != nil {
		return model.Vertices{}
	}
	return model.Place(o, a, f, ids, nil)
}

// sparse are rows of sparse features.
func (r *reader) sparse(rows, dim int) *graph.SparseRows {
	x := &graph.SparseRows{Offsets: make([]int64, rows+1)}
	last := int64(0)
	for i := range x.Offsets {
		x.Offsets[i] = int64(r.number())
		if x.Offsets[i] < last || x.Offsets[i] > int64(len(r.b)) {
			r.err = cmp.Or(r.err, errors.New("offsets of sparse features that do not ascend"))
			return x
		}
		last = x.Offsets[i]
	}
	x.Cols, x.Vals = array[uint32](r, int(last)), array[float32](r, int(last))
	if len(x.Cols) > 0 && int(slices.Max(x.Cols)) >= dim || x.Offsets[0] != 0 {
		r.err = cmp.Or(r.err, errors.New("a sparse feature beyond the last"))
	}
	return x
}

// array is n elements on the heap.
func array[T mapped.Elem](r *reader, n int) []T {
	var zero T
	b := r.bytes(n * int(unsafe.Sizeof(zero)))
	if r.err != nil {
		return nil
	}
	x := make([]T, n)
	copy(mapped.Bytes(x), b)
	return x
}

// vector is n elements where an Ops computes.
func vector[T mapped.Elem](r *reader, o kernels.Ops, a *mapped.Arena, n int) kernels.Vector[T] {
	return kernels.Place(o, a, array[T](r, n))
}

// elements are arrays of a message, and where they are to go.
type elements []element

type element struct {
	dst kernels.Mat
	src []byte
}

func (r *reader) values(f *model.Frame, list []model.Ref) (all elements) {
	for _, ref := range list {
		dst := f.Value(ref)
		all = append(all, element{dst, r.bytes(dst.Bytes())})
	}
	return all
}

func (e elements) put(o kernels.Ops) {
	for _, x := range e {
		upload(o, x.dst, x.src)
	}
}

func upload(o kernels.Ops, dst kernels.Mat, src []byte) {
	if len(src) > 0 {
		o.Upload(dst.Address(), src)
	}
}
