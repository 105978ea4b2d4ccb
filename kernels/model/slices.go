package model

import (
	"siafu/internal/size"
	"siafu/kernels"
)

// Slices divide the columns of rows, so that only one slice of them must be in memory while intervals
// gather (Spec.Slices).

// sliceUnit is the number of floats of a cache line: slices begin at lines.
const sliceUnit = 16

// SliceStep returns the number of columns of each slice, but the last, of rows of the given width.
func (s Spec) SliceStep(width int) int {
	if s.Slices <= 1 {
		return width
	}
	return min(width, size.RoundUp((width+s.Slices-1)/s.Slices, sliceUnit))
}

// Slices returns the bounds of the slices in which layer l gathers, nil if it gathers all columns at once.
// The last layer is part of it too.
func (s *Store) Slices(l int) []int { return s.plan.slices(l) }

func (p *plan) slices(l int) []int {
	n := p.net
	if !p.sliced || !n.Gathers(l) || l == 0 && n.Lists() {
		return nil
	}
	width := n.Gathering(l).Width
	bounds := []int{0}
	for at := 0; at < width; {
		at = min(at+n.Spec.SliceStep(width), width)
		bounds = append(bounds, at)
	}
	if len(bounds) == 2 {
		return nil
	}
	return bounds
}

// spare returns the columns of memory that an interval needs for a slice.
func (n *Network) spare() (columns int) {
	for l := range n.Layers {
		if n.Gathers(l) {
			columns = max(columns, n.Spec.SliceStep(n.Gathering(l).Width))
		}
	}
	return columns
}

// Spare returns unused memory of the frame's slot as a matrix [Rows x cols] for columns of a slice.
func (f *Frame) Spare(cols int) kernels.Mat {
	return f.slot[len(f.slot)-1].Reshape(f.Rows(), cols)
}
