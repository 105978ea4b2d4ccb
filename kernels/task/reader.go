package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
	"siafu/kernels/model"
)

// messageParts reads the parts of a message from b or from the stream r.
type messageParts struct {
	b   []byte
	r   io.Reader // nil: b
	sum uint32    // of the parts before
}

// front is the size of a part's length field in bytes.
const front = 8

// next reads the next part, of at most most bytes, and verifies its checksum.
func (p *messageParts) next(most int) (*reader, error) {
	length, err := p.take(front)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length)
	if n > uint64(most) {
		return nil, fmt.Errorf("a part of a message has %d bytes, more than the maximum of %d", n, most)
	}
	b, err := p.take(int(n))
	if err != nil {
		return nil, err
	}
	sum, err := p.take(crc32.Size)
	if err != nil {
		return nil, err
	}
	p.sum = crc32.Update(crc32.Update(p.sum, castagnoli, length), castagnoli, b)
	if p.sum != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("a part of %d bytes of a message is damaged: its checksum is wrong", n)
	}
	return &reader{wire.Reader{Rest: b}}, nil
}

// ahead starts to read the next part during computation. The returned function waits for it.
func (p *messageParts) ahead(most int) func() (*reader, error) {
	type answer struct {
		part *reader
		err  error
	}
	come := make(chan answer, 1)
	go func() {
		part, err := p.next(most)
		come <- answer{part, err}
	}()
	return sync.OnceValues(func() (*reader, error) {
		a := <-come
		return a.part, a.err
	})
}

// chunk is the number of bytes allocated for a stream before any has arrived.
const chunk = 1 << 16

// take returns the next n bytes. For a stream it allocates at most twice the received bytes.
func (p *messageParts) take(n int) ([]byte, error) {
	if p.r == nil {
		if n > len(p.b) {
			return nil, fmt.Errorf("a message is damaged: %w", io.ErrUnexpectedEOF)
		}
		b := p.b[:n]
		p.b = p.b[n:]
		return b, nil
	}
	var b []byte
	for len(b) < n {
		at := len(b)
		b = slices.Grow(b, min(n-at, max(at, chunk)))
		b = b[:min(cap(b), n)]
		if count, err := io.ReadFull(p.r, b[at:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("a message is cut off after %d of %d bytes: %w", at+count, n, err)
		}
	}
	return b, nil
}

// reader parses a part of a message.
type reader struct{ wire.Reader }

// wrong returns the error of an invalid message.
func (r *reader) wrong(what string) error {
	return errors.Join(fmt.Errorf("the %s of a task do not match this network", what), r.Err)
}

func (r *reader) name() Name {
	n := Name{Part: r.Number(), Interval: r.Number(), Epoch: r.Number(), Layer: r.Number()}
	n.Stage, n.Attempt, n.Train = model.Stage(r.Number()), r.Number(), r.Flag()
	return n
}

// maxStages bounds the stages of a task: each may be repeated.
func maxStages(net *model.Network) int { return 2 * int(model.Stages) * len(net.Layers) }

// stages reads the stages of a message, and checks that the network has them.
func (r *reader) stages(net *model.Network) (list []model.Do) {
	n := r.Number()
	if r.Err == nil && (n < 1 || n > maxStages(net)) {
		r.Err = fmt.Errorf("%d stages, but the maximum is %d", n, maxStages(net))
	}
	for k := 0; k < n && r.Err == nil; k++ {
		d := model.Do{Layer: r.Number(), Stage: model.Stage(r.Number()), Again: r.Flag()}
		if !net.Has(d) {
			r.Fail(fmt.Errorf("there is no stage %d of layer %d", d.Stage, d.Layer))
		}
		list = append(list, d)
	}
	return list
}

// value reads the encoded bytes of a matrix like dst.
func (r *reader) value(dst kernels.Mat, c Codec) []byte {
	if c == nil || dst.Half() {
		return r.Bytes(dst.Bytes(), dst.Bytes())
	}
	return mapped.Bytes(r.decode(dst.Rows, dst.Cols, c))
}

// decode returns rows x cols floats on the heap.
func (r *reader) decode(rows, cols int, c Codec) []float32 {
	if c == nil {
		return wire.Array[float32](&r.Reader, rows*cols)
	}
	payload := r.Bytes(0, c.Most(rows, cols))
	if r.Err != nil {
		return nil
	}
	x := make([]float32, rows*cols)
	r.Err = c.Decode(x, cols, payload)
	return x
}

// sparse reads rows of sparse features.
func (r *reader) sparse(rows, dim int) *graph.SparseRows {
	x := &graph.SparseRows{Offsets: make([]int64, rows+1)}
	last := int64(0)
	for i := range x.Offsets {
		x.Offsets[i] = int64(r.Number())
		if x.Offsets[i] < last || x.Offsets[i] > int64(len(r.Rest)) {
			r.Fail(errors.New("the offsets of sparse features do not ascend"))
			return x
		}
		last = x.Offsets[i]
	}
	x.Cols, x.Vals = wire.Array[uint32](&r.Reader, int(last)), wire.Array[float32](&r.Reader, int(last))
	if len(x.Cols) > 0 && int(slices.Max(x.Cols)) >= dim || x.Offsets[0] != 0 {
		r.Fail(errors.New("a sparse feature is out of range"))
	}
	return x
}

// classes checks that labels are below n and that splits are valid.
func (r *reader) classes(labels []int32, split []uint8, n int) {
	if len(split) > 0 && slices.Max(split) > graph.SplitTest {
		r.Fail(errors.New("a split is out of range"))
	}
	if len(labels) > 0 && int(slices.Max(labels)) >= n {
		r.Fail(errors.New("a label is out of range"))
	}
}
