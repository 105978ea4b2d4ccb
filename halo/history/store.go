package history

import (
	"siafu/halo"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Rows and Lists are the purposes of the arrays of a store.
const (
	Rows  = "history of representations"
	Lists = "rows of histories that travel"
)

// Options are the vertices, layers and format of a store.
type Options struct {
	Comm   comm.Comm
	Shapes []halo.Shape // the layers that gather
	Plan   *halo.Plan   // without sums: has the own rows and ghosts
	Format Format
	Seed   uint64        // of rounding at random
	Team   halo.Parallel // packs and takes rows
}

// Store is a rank's part of the history. Its methods are called by one goroutine at a
// time.
type Store struct {
	o      Options
	layers []*series // by layer, nil for one that does not gather
	buffer []byte    // includes the slack for Int8
	sets   sets
	pull   pull
	stats  halo.Stats
}

// series is the rows of a layer, of the own vertices in their order.
type series struct {
	width, stride int
	rows          []byte   // [own x stride], and slack
	epochs        []uint32 // [own] of each row; 0: none has been pushed, and the row is zeros
}

// New allocates a store. All ranks together need (L-1)·d·|V|·s bytes if L-1 layers gather rows
// of width d, with s = 4 for Float32 (DIGEST, equation 7), and an epoch per row. Memory comes
// from a.
func New(o Options, a *mapped.Arena) *Store {
	s, a := &Store{o: o}, a.For(Rows)
	for _, l := range o.Shapes {
		for len(s.layers) <= l.Layer {
			s.layers = append(s.layers, nil)
		}
		stride := o.Format.Stride(l.Width)
		s.layers[l.Layer] = &series{
			width: l.Width, stride: stride,
			rows: mapped.Make[byte](a, o.Plan.Own*stride+o.Format.slack()), epochs: mapped.Make[uint32](a, o.Plan.Own),
		}
		s.buffer = make([]byte, max(len(s.buffer), stride+kernels.CodeSlack))
	}
	return s
}

// slack returns the number of bytes read after the last row.
func (f Format) slack() int {
	if f == Int8 {
		return kernels.CodeSlack
	}
	return 0
}

// Bytes returns the memory of rows, without their epochs.
func (s *Store) Bytes() (bytes int64) {
	for _, l := range s.layers {
		if l != nil {
			bytes += int64(len(l.rows) - s.o.Format.slack())
		}
	}
	return bytes
}

// at returns the row of an own vertex.
func (l *series) at(row int) []byte { return l.rows[row*l.stride : (row+1)*l.stride] }

// Push replaces the rows of own vertices from first on by x [rows x width], which are of an
// epoch of at least 1. draw separates the random numbers of Int8 in one push from those in
// another.
func (s *Store) Push(layer, epoch, draw, first int, x []float32) {
	l := s.layers[layer]
	n := len(x) / l.width
	s.write(layer, draw, first, x)
	for i := range n {
		l.epochs[first+i] = uint32(epoch)
	}
}

// Replace replaces the row of an own vertex, which keeps its epoch; a first row is of the given epoch.
// draw is as in Push.
func (s *Store) Replace(layer, epoch, draw, row int, x []float32) {
	s.write(layer, draw, row, x)
	if l := s.layers[layer]; l.epochs[row] == 0 {
		l.epochs[row] = uint32(epoch)
	}
}

// write writes the rows of own vertices from first on.
func (s *Store) write(layer, draw, first int, x []float32) {
	l := s.layers[layer]
	n := len(x) / l.width
	if s.o.Format == Float32 {
		copy(floats(l.rows[first*l.stride:(first+n)*l.stride]), x)
	} else {
		draws := kernels.NewRounding(s.o.Seed, draw, layer, false)
		for i := range n {
			s.o.Format.put(l.at(first+i), x[i*l.width:(i+1)*l.width], &draws, s.o.Plan.OwnIDs[first+i], s.buffer)
		}
	}
}

// Own reads the row of an own vertex [width] and returns the epoch that it is of.
func (s *Store) Own(layer, row int, dst []float32) (epoch int) {
	l := s.layers[layer]
	s.o.Format.get(dst, l.rows[row*l.stride:])
	return int(l.epochs[row])
}

// TakeStats returns the traffic since the last call.
func (s *Store) TakeStats() halo.Stats {
	taken := s.stats
	s.stats = halo.Stats{}
	return taken
}
