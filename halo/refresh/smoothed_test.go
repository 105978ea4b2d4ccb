package refresh_test

import (
	"fmt"
	"testing"

	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/kernels"
)

// Smoothed rows are the moving average of received rows, starting at zero.
func TestSmoothed(t *testing.T) {
	data := planted(t)
	for _, name := range []string{"previous:F0.5", "previous:G0.5", "previous:GF0.5"} {
		t.Run(name, func(t *testing.T) {
			together(t, data, "none", func(m *member) error {
				const l = 1
				s, w, n := m.timed(t, name, shape()[l:]), widths[l], m.shard.NumOwn()
				p, _ := refresh.Parse(name)
				average := func(v uint32, epoch, k int, smoothed bool) (x float32) {
					if !smoothed && epoch > 1 {
						return row(v, epoch-1, l, k)
					}
					for e := 2; e <= epoch; e++ {
						x = x/2 + row(v, e-1, l, k)/2
					}
					return x
				}
				for epoch := 1; epoch <= 6; epoch++ {
					at := halo.Slot{Epoch: epoch, Layer: l}
					view, err := seen(s, at, show(m.shard.Own, epoch, l))
					if err != nil {
						return err
					}
					for i, v := range m.shard.Ghosts {
						for k := range w {
							if got, want := view.Rows.Host()[i*w+k], average(v, epoch, k, p.Rows); got != want {
								return fmt.Errorf("epoch %d: ghost of vertex %d has %v, want %v", epoch, v, got, want)
							}
						}
					}
					at.Backward = true
					copy(s.SendBuffer(at).Host(), show(m.shard.Ghosts, epoch, l).Host())
					if err := pass(s, at, s.SendBuffer(at)); err != nil {
						return err
					}
					got, want := kernels.HostMat(n, w, make([]float32, n*w)), make([]float32, n*w)
					if err := s.Add(m.team, at, got, 0, n); err != nil {
						return err
					}
					for _, i := range m.shard.SendRows {
						for k := range w {
							want[int(i)*w+k] += average(m.shard.Own[i], epoch, k, p.Grads)
						}
					}
					for i, x := range got.Host() {
						if x != want[i] {
							return fmt.Errorf("epoch %d: the gradient of vertex %d is %v, want %v", epoch, m.shard.Own[i/w], x, want[i])
						}
					}
				}
				if err := s.Settle(); err != nil {
					return err
				}
				return m.Barrier()
			})
		})
	}
}

// A block is sent if it has moved by THETA since it was last sent, or if that was K epochs
// ago. Otherwise a message without rows is sent. Receivers use the last block.
func TestDrift(t *testing.T) {
	data := planted(t)
	const l, most = 0, 3
	// Factors of rows by epoch. From 1.12 to 1.3 rows move by 16 %, otherwise by less.
	factors := []float32{0, 1, 1.02, 1.05, 1.12, 1.3, 1.3, 1.35, 1.4, 1.41}
	leaves := []int{0, 1, 1, 1, 4, 5, 5, 5, 8, 8} // the epoch in which the used rows were sent
	for _, rows := range []string{"none", "s2"} {
		t.Run(rows, func(t *testing.T) {
			together(t, data, rows, func(m *member) error {
				s, w := m.timed(t, fmt.Sprintf("drift:0.1,%d", most), shape()[:1]), widths[l]
				for epoch := 1; epoch < len(factors); epoch++ {
					at, x := halo.Slot{Epoch: epoch, Layer: l}, show(m.shard.Own, 1, l)
					for i := range x.Host() {
						x.Host()[i] *= factors[epoch]
					}
					view, err := seen(s, at, x)
					if err != nil {
						return err
					}
					for i, v := range m.shard.Ghosts {
						for k := range w {
							if got, want := view.Rows.Host()[i*w+k], factors[leaves[epoch]]*row(v, 1, l, k); got != want ||
								int(view.Epochs[i]) != leaves[epoch] {
								return fmt.Errorf("epoch %d: ghost of vertex %d has %v of epoch %d, want %v of %d", epoch, v, got,
									view.Epochs[i], want, leaves[epoch])
							}
						}
						if age := epoch - int(view.Epochs[i]); age >= most {
							return fmt.Errorf("epoch %d: a row is %d epochs old", epoch, age)
						}
					}
					var raw, messages int64
					for q := range ranks {
						if n := m.shard.SendStart[q+1] - m.shard.SendStart[q]; n > 0 {
							messages++
							if leaves[epoch] == epoch {
								raw += 4 * n * int64(w)
							}
						}
					}
					if got := s.TakeStats(); got.RawBytes != raw || got.Messages != messages || raw == 0 && got.SentBytes != 0 {
						return fmt.Errorf("epoch %d: %d bytes of rows as %d in %d messages, want %d in %d", epoch, got.RawBytes,
							got.SentBytes, got.Messages, raw, messages)
					}
				}
				return m.Barrier()
			})
		})
	}
}
