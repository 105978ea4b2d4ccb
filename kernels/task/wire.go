package task

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
	"siafu/kernels/model"
)

// A task is sent as parts: its head, and its rows in one part or in two halves. A part is the
// number of its bytes, these bytes, and a checksum (CRC-32C, 4 bytes) of both, which continues
// the preceding part's. Thus a complete part can be trusted, and fits no other head. All is
// little-endian.
//
//	head
//	name      part, interval, epoch, layer, stage, attempt, train: 8 bytes each
//	version   of the weights; 1 if ÂX is stored as bfloat16
//	codec     its name; none: rows are unchanged
//	stages    the number that only this task repeats, which come first; the number of all,
//	          and the layer, stage and repetition of each
//	rows      the number of all, and of the first half
//	loss      1 if there is one, 2 if it is an objective's; scale, whether hits are counted;
//	          of an objective its task, smoothing, whether it has weights, the weights, and
//	          with regression rows and spread of each split
//	weights   of the layers of the stages
//
//	rows
//	ids       dataset ids
//	features  if the stages need them: their elements; of sparse ones offsets, columns and
//	          values
//	values    of model.Transfers.Inputs in their order: the elements
//	loss      labels, split; of an objective with values, the values
//
// A result is one part: the name, the values of Transfers.Outputs and the gradients of Transfers.Grads in
// their order, and the results of the loss. Numbers have 8 bytes. Arrays are preceded by the
// number of their bytes, which must be the expected one, or at most the codec's.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode appends the task in its Form. o reads its values.
func (t *Task) Encode(b []byte, o kernels.Ops) []byte {
	w := writer{Writer: wire.Writer{B: b}, ops: o, codec: t.Form.Codec}
	t.Frame.Enter(t.Do, t.Pass())
	net, cut, rows := t.Frame.Network, t.Frame.Network.Transfers(t.Recompute, t.Do, t.Pass()), t.Frame.Rows()
	first := t.Form.first(rows)
	w.begin()
	w.head(t, cut, first)
	for _, r := range layers(net, t.Recompute, t.Do) {
		w.mat(t.Frame.Weights.Part(r.Lo, r.Hi))
	}
	w.end()
	w.ids = kernels.FetchVector(o, t.Frame.Vertices().IDs)
	w.rows(t, cut, 0, first)
	if first < rows {
		w.rows(t, cut, first, rows)
	}
	return w.B
}

func (t *Task) hasLoss() bool {
	return slices.ContainsFunc(t.Do, func(d model.Do) bool { return d.Stage == model.Loss })
}

// layers returns the parts of the weights that stages use, in order.
func layers(net *model.Network, lists ...[]model.Do) (used []model.Range) {
	for l, r := range net.Spec.LayerRanges() {
		if slices.ContainsFunc(slices.Concat(lists...), func(d model.Do) bool { return d.Layer == l }) {
			used = append(used, r)
		}
	}
	return used
}

// result appends the result of a task.
func (t *Task) result(cut model.Transfers, b []byte, o kernels.Ops) []byte {
	w := writer{Writer: wire.Writer{B: b}, ops: o, codec: t.Form.Codec, ids: kernels.FetchVector(o, t.Frame.Vertices().IDs)}
	w.begin()
	w.name(t.Name)
	for _, r := range cut.Outputs {
		w.value(t.Frame.Value(r), 0, t.key(r))
	}
	for _, p := range cut.Grads {
		w.mat(p.In(t.Frame.Grad))
	}
	if t.hasLoss() {
		w.found(t.Loss)
	}
	w.end()
	return w.B
}

// NameOf returns the name at the start of a task or a result. It checks only the head of a
// task.
func NameOf(message []byte) (Name, error) {
	r, err := (&messageParts{b: message}).next(len(message))
	if err != nil {
		return Name{}, err
	}
	return r.name(), r.Err
}

// Accept stores a result of the task. A result that is damaged or of another task changes
// nothing.
func (t *Task) Accept(reply []byte, o kernels.Ops) error {
	p := messageParts{b: reply}
	r, err := p.next(len(reply))
	if err != nil {
		return err
	}
	if name := r.name(); r.Err != nil || name.WithoutAttempt() != t.Name.WithoutAttempt() {
		return fmt.Errorf("a result of %s for %s", name, t.Name)
	}
	var values elements
	cut := t.Frame.Network.Transfers(nil, t.Do, t.Pass())
	for _, ref := range cut.Outputs {
		dst := t.Frame.Value(ref)
		values = append(values, element{dst, r.value(dst, t.Form.Codec)})
	}
	for _, g := range cut.Grads {
		values = append(values, element{g.In(t.Frame.Grad), r.Bytes(4*g.Len(), 4*g.Len())})
	}
	var found Found
	if t.hasLoss() {
		found = r.found(t.Loss)
	}
	if r.Err != nil || len(r.Rest) > 0 || len(p.b) > 0 {
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
	wire.Writer
	ops   kernels.Ops
	codec Codec
	ids   []uint32 // of all rows
	part  int      // start of the part
	sum   uint32   // of the parts before
}

// begin starts a part, and end completes it.
func (w *writer) begin() {
	w.part = len(w.B)
	w.Numbers(0)
}

func (w *writer) end() {
	part := w.B[w.part:]
	binary.LittleEndian.PutUint64(part, uint64(len(part)-front))
	w.sum = crc32.Update(w.sum, castagnoli, part)
	w.B = binary.LittleEndian.AppendUint32(w.B, w.sum)
}

// mat appends the elements of a matrix, after the number of its bytes.
func (w *writer) mat(x kernels.Mat) {
	n := x.Bytes()
	w.Numbers(n)
	w.B = slices.Grow(w.B, n)
	w.B = w.B[:len(w.B)+n]
	if n > 0 {
		w.ops.Download(w.B[len(w.B)-n:], x.Address())
	}
}

// value appends rows of a value, from row lo on, encoded by the codec.
func (w *writer) value(x kernels.Mat, lo int, k Key) {
	if w.codec == nil || x.Half() {
		w.mat(x)
		return
	}
	var buffer []float32
	at := len(w.B)
	w.Numbers(0)
	w.B = w.codec.Encode(w.B, kernels.Fetch(w.ops, x, &buffer), x.Cols, w.ids[lo:lo+x.Rows], k)
	binary.LittleEndian.PutUint64(w.B[at:], uint64(len(w.B)-at-front))
}

func (w *writer) name(n Name) {
	w.Numbers(n.Part, n.Interval, n.Epoch, n.Layer, int(n.Stage), n.Attempt, wire.Bit(n.Train))
}

// head appends the head of a task up to its weights.
func (w *writer) head(t *Task, cut model.Transfers, first int) {
	w.name(t.Name)
	half := slices.ContainsFunc(cut.Inputs, func(r model.Ref) bool { return t.Frame.Value(r).Half() })
	w.Numbers(t.Version, wire.Bit(half))
	codec := ""
	if w.codec != nil {
		codec = w.codec.Name()
	}
	w.Bytes([]byte(codec))
	w.Numbers(len(t.Recompute), len(t.Recompute)+len(t.Do))
	for _, d := range slices.Concat(t.Recompute, t.Do) {
		w.Numbers(d.Layer, int(d.Stage), wire.Bit(d.Again))
	}
	w.Numbers(t.Frame.Rows(), first, t.kind())
	if t.hasLoss() {
		w.Numbers(int(math.Float32bits(t.Loss.Scale)), wire.Bit(t.Loss.Count))
	}
	if t.kind() == ofObjective {
		w.objective(t.Loss.Objective)
	}
}

// rows appends the part of rows [lo, hi).
func (w *writer) rows(t *Task, cut model.Transfers, lo, hi int) {
	w.begin()
	w.Bytes(mapped.Bytes(w.ids[lo:hi]))
	if f := t.Frame.Vertices().Features; cut.Features && f.Sparse != nil {
		w.sparse(f.Sparse.Part(lo, hi))
	} else if cut.Features {
		x := f.Dense.Part(lo, hi)
		if x.Half() { // functions receive float32
			wide := kernels.HostMat(x.Rows, x.Cols, make([]float32, x.Rows*x.Cols))
			w.ops.CopyColumns(wide, x, 0)
			x = wide
		}
		w.value(x, lo, t.key(features))
	}
	for _, r := range cut.Inputs {
		w.value(t.Frame.Value(r).Part(lo, hi), lo, t.key(r))
	}
	if t.hasLoss() {
		w.Bytes(mapped.Bytes(kernels.FetchVector(w.ops, t.Loss.Labels.Part(lo, hi))))
		w.Bytes(kernels.FetchVector(w.ops, t.Loss.Split.Part(lo, hi)))
		if o := t.Loss.Objective; hasValues(o) {
			w.Bytes(mapped.Bytes(t.Loss.Values[lo*o.Outputs : hi*o.Outputs]))
		}
	}
	w.end()
}

func (w *writer) sparse(x kernels.Sparse) {
	rows := x.Source
	lo, hi := rows.Offsets[0], rows.Offsets[len(rows.Offsets)-1]
	for _, at := range rows.Offsets {
		w.Numbers(int(at - lo))
	}
	w.Bytes(mapped.Bytes(rows.Cols[lo:hi]))
	w.Bytes(mapped.Bytes(rows.Vals[lo:hi]))
}

// elements lists the arrays of a message, and their destinations.
type elements []element

type element struct {
	dst kernels.Mat
	src []byte
}

func (e elements) put(o kernels.Ops) {
	for _, x := range e {
		if len(x.src) > 0 {
			o.Upload(x.dst.Address(), x.src)
		}
	}
}
