package halo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/halo"
	"siafu/internal/fault"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// spread gives each of n vertices a rank at random, none to the last of several.
func spread(n, ranks int, r *rand.Rand) [][]uint32 {
	own := make([][]uint32, ranks)
	for _, v := range r.Perm(n) { // rows are in no order of ids
		q := r.IntN(max(ranks-1, 1))
		own[q] = append(own[q], uint32(v))
	}
	return own
}

// number returns column c of the row of a vertex.
func number(v uint32, c int) float32 { return float32(v) + float32(c)/16 }

// Every rank finds each vertex and fetches the current rows of its requests, repeated or not,
// any number of times. Some ranks own none or request none. Rows have any width.
func TestRowSetFetch(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		ranks, n := 1+int(seed), 1+r.IntN(60)
		own, width := spread(n, ranks, r), int(seed%3)*2+1
		asked := make([][]uint32, ranks)
		for q := range asked {
			for range r.IntN(3) * n { // a third of all ranks requests none
				if v := uint32(r.IntN(n)); !slices.Contains(own[q], v) {
					asked[q] = append(asked[q], v)
				}
			}
		}
		err := inproc.Run(ranks, func(c world.Comm) error {
			mine := own[c.Rank()]
			d, err := halo.NewDirectory(c, mine, int64(n))
			if err != nil {
				return err
			}
			for v := range uint32(n) {
				row, ok := d.Row(v)
				if at := slices.Index(mine, v); ok != (at >= 0) || ok && int(row) != at {
					return fmt.Errorf("vertex %d is in row %d, %t; it is in %d", v, row, ok, at)
				}
			}
			wanted := asked[c.Rank()]
			s, err := d.Request(wanted)
			if err != nil {
				return err
			}
			different := slices.Compact(slices.Sorted(slices.Values(wanted)))
			if s.Len() != len(different) {
				return fmt.Errorf("%d vertices, asked for were %d", s.Len(), len(different))
			}
			rows, dst := make([]float32, len(mine)*width), make([]float32, s.Len()*width)
			for pass := range 3 {
				for i, v := range mine {
					for c := range width {
						rows[i*width+c] = number(v, c+100*pass)
					}
				}
				if err := s.Fetch(dst, rows, width); err != nil {
					return err
				}
				for _, v := range wanted {
					for c := range width {
						if got, want := dst[d.At(s, v)*width+c], number(v, c+100*pass); got != want {
							return fmt.Errorf("pass %d: column %d of vertex %d is %v, want %v", pass, c, v, got, want)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("seed %d, %d ranks: %v", seed, ranks, err)
		}
	}
}

// Owners add gradients in ascending order of ranks, in any order of arrival. The numbers lose
// different digits in another order. Rows that are not requested stay unchanged.
func TestRowSetReturn(t *testing.T) {
	const ranks, n, width = 5, 7, 2
	given := []float32{1, 1e8, 3, -1e8, 0.25} // by rank
	inOrder := func(owner int) float32 {
		sum := float32(0.5)
		for q, g := range given {
			if q != owner {
				sum += g
			}
		}
		return sum
	}
	if back := 0.5 + given[3] + given[2] + given[1] + given[0]; back == inOrder(4) {
		t.Fatal("the order does not show")
	}
	err := inproc.Run(ranks, func(c world.Comm) error {
		var mine, others []uint32
		for v := range uint32(n) {
			if int(v)%ranks == c.Rank() {
				mine = append(mine, v)
			} else if v != 3 {
				others = append(others, v)
			}
		}
		d, err := halo.NewDirectory(c, mine, n)
		if err != nil {
			return err
		}
		s, err := d.Request(others)
		if err != nil {
			return err
		}
		grad, src := slices.Repeat([]float32{0.5}, len(mine)*width), slices.Repeat([]float32{given[c.Rank()]}, s.Len()*width)
		for i := range src {
			if i%width > 0 {
				src[i] = 2 * src[i]
			}
		}
		if err := s.Return(grad, src, width); err != nil {
			return err
		}
		for i, v := range mine {
			want := [width]float32{inOrder(c.Rank()), 0.5}
			for q, g := range given {
				if q != c.Rank() {
					want[1] += 2 * g
				}
			}
			if v == 3 {
				want = [width]float32{0.5, 0.5}
			}
			if got := [width]float32(grad[i*width:]); got != want {
				return fmt.Errorf("the gradient of vertex %d is %v, want %v", v, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A vertex without an owner, with two owners or out of range is an error on every rank.
func TestNewDirectoryRefuses(t *testing.T) {
	for name, own := range map[string][2][]uint32{
		"nobody":       {{0, 1}, {3}},
		"two":          {{0, 1, 2}, {2, 3}},
		"one, and two": {{0, 1}, {1, 2}},
		"none, there":  {{0, 1}, {2, 4}},
		"too many":     {{0, 1, 2}, {3, 4, 5, 6, 7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			failed := make([]error, 2)
			_ = inproc.Run(2, func(c world.Comm) error {
				_, err := halo.NewDirectory(c, own[c.Rank()], 4)
				failed[c.Rank()] = err
				return err
			})
			for q, err := range failed {
				if fault.KindOf(err) != fault.Runtime || !strings.Contains(fmt.Sprint(err), "4") {
					t.Errorf("rank %d: %v", q, err)
				}
			}
		})
	}
}
