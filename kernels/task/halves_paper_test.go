package task_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/task"
)

// number returns n in message format.
func number(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// watched records the rows of its products.
type watched struct {
	*kernels.Team
	mu   sync.Mutex
	rows []int
	ran  chan struct{} // closed by the first product
}

// MatMulBiasReLUDropout implements kernels.Ops.
func (w *watched) MatMulBiasReLUDropout(dst, a, b, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	w.Team.MatMulBiasReLUDropout(dst, a, b, bias, relu, drop)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows = append(w.rows, dst.Rows); len(w.rows) == 1 {
		close(w.ran)
	}
}

// held is a stream that continues after the first computation.
type held struct {
	io.Reader
	ran  chan struct{}
	rows *watched
	seen []int // at that time
}

// Read implements io.Reader.
func (h *held) Read(b []byte) (int, error) {
	select {
	case <-h.ran:
		h.rows.mu.Lock()
		h.seen = append(h.seen, len(h.rows.rows))
		h.rows.mu.Unlock()
		return h.Reader.Read(b)
	case <-time.After(hosttest.Patience):
		return 0, errors.New("nobody computes before the second half has come")
	}
}

// "If a Lambda is created to process a data chunk, we let the Lambda retrieve the first
// half of the data, with which it proceeds to computation while simultaneously
// retrieving the second half. This optimization overlaps computation with communication
// from within each Lambda." (§6)
func TestComputesOnTheFirstHalfWhileTheSecondComes(t *testing.T) {
	const rows, first = many, 32
	b := newBench(t, "gcn", rows)
	one := b.task(1, b.last()...)
	whole, err := task.Work(b.net, one.Encode(nil, b.ops), nil, b.ops)
	if err != nil {
		t.Fatal(err)
	}
	one.Form.Halves = true
	message := one.Encode(nil, b.ops)
	second := len(message) - 12 - len(opened(message)[2])
	ops := &watched{Team: b.ops, ran: make(chan struct{})}
	stream := &held{Reader: bytes.NewReader(message[second:]), ran: ops.ran, rows: ops}
	result, err := task.WorkFrom(b.net, io.MultiReader(bytes.NewReader(message[:second]), stream), nil, ops)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(result, whole) {
		t.Error("the result is another one")
	}
	if len(stream.seen) == 0 || stream.seen[0] < 1 || len(ops.rows) != 2 || ops.rows[0] != first || ops.rows[1] != rows-first {
		t.Errorf("products of %d rows, %d before the second half came", ops.rows, stream.seen)
	}
}
