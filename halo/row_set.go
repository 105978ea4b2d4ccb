package halo

import (
	"siafu/internal/mapped"
)

// Fetch copies the set's rows from their owners' matrices own [· x width] to dst [Len x width].
// Collective.
func (s *RowSet) Fetch(dst, own []float32, width int) error {
	s.out = s.out[:0]
	for _, rows := range s.sendRows {
		for _, r := range rows {
			s.out = append(s.out, own[int(r)*width:(int(r)+1)*width]...)
		}
	}
	return s.exchange(s.out, s.sendBytes(width), dst, s.recvBytes(width))
}

// Return adds the gradients of the rows of a set, src [Len x width], to grad [· x width]
// of their owners. Collective.
func (s *RowSet) Return(grad, src []float32, width int) error {
	total := 0
	for _, rows := range s.sendRows {
		total += len(rows) * width
	}
	if cap(s.in) < total {
		s.in = make([]float32, total)
	}
	in := s.in[:total]
	if err := s.exchange(src, s.recvBytes(width), in, s.sendBytes(width)); err != nil {
		return err
	}
	for _, rows := range s.sendRows {
		for _, r := range rows {
			to := grad[int(r)*width : (int(r)+1)*width]
			for c, x := range in[:width] {
				to[c] += x
			}
			in = in[width:]
		}
	}
	return nil
}

// sendBytes and recvBytes return bytes by rank.
func (s *RowSet) sendBytes(width int) []int {
	counts := make([]int, len(s.sendRows))
	for q, rows := range s.sendRows {
		counts[q] = 4 * width * len(rows)
	}
	return counts
}

func (s *RowSet) recvBytes(width int) []int {
	counts := make([]int, len(s.sendRows))
	for q := range counts {
		counts[q] = 4 * width * int(s.from[q+1]-s.from[q])
	}
	return counts
}

func (s *RowSet) exchange(out []float32, outBytes []int, in []float32, inBytes []int) error {
	if s.comm.Size() == 1 {
		return nil
	}
	r, err := s.comm.Ialltoallv(mapped.Bytes(out), outBytes, mapped.Bytes(in), inBytes)
	if err != nil {
		return err
	}
	return r.Wait()
}
