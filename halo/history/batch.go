package history

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Batch provides the ghost rows of mini-batches of own vertices (GNNAutoScale, Fey et al.,
// ICML'21, section 3). It pushes the rows of a batch as soon as its layer has computed
// them. Rows of all other vertices come from the history, which includes earlier pushes of
// other ranks in the same pass. It returns no gradients to ghosts.
//
// Every rank has the same number of batches, and processes one batch per pass (Begin).
type Batch struct {
	pulled
	ops   kernels.Ops
	cuts  []BatchVertices
	sets  []int // of the pass, by rank
	epoch int   // of the pass
	cut   BatchVertices

	own    []float32 // host copy of own rows in device memory
	host   []float32 // [most ghosts x widest]
	ghosts kernels.Mat
	epochs []uint32 // [most ghosts]
	blocks []halo.Block
}

var _ halo.Collective = (*Batch)(nil)

// BatchVertices are the vertices of a batch: own vertices First..First+Rows-1, and the outside
// vertices from which they gather.
type BatchVertices struct {
	First, Rows int
	Outside     Set
}

// NewBatch makes the source of the mini-batches of a store, and exchanges the sets. It uses a
// fork of ops; memory comes from a. Collective.
func NewBatch(s *Store, cuts []BatchVertices, ops kernels.Ops, a *mapped.Arena) (*Batch, error) {
	b, list, most, width := &Batch{pulled: pulled{s}, ops: ops.Fork(), cuts: cuts}, make([]Set, len(cuts)), 0, 0
	for k, c := range cuts {
		list[k], most = c.Outside, max(most, c.Outside.Len())
	}
	for _, l := range s.layers {
		if l != nil {
			width = max(width, l.width)
		}
	}
	b.host, b.epochs = mapped.Make[float32](a.For(halo.Ghosts), most*width), mapped.Make[uint32](a.For(halo.Ghosts), most)
	b.ghosts = kernels.PlaceMat(b.ops, a.For(halo.Ghosts), most, width, b.host)
	return b, s.ExchangeSets(list, a)
}

// Outside returns the number of outside vertices that all batches of this rank gather from.
func (b *Batch) Outside() (rows int) {
	for _, c := range b.cuts {
		rows += c.Outside.Len()
	}
	return rows
}

// Set returns the outside vertices of the current batch, in the order of the ghosts.
func (b *Batch) Set() *Set { return &b.cut.Outside }

// Stored reads the stored row of the i-th vertex of the current batch [width], and returns its
// epoch, 0 if there is none.
func (b *Batch) Stored(layer, i int, dst []float32) (epoch int) {
	return b.store.Own(layer, b.cut.First+i, dst)
}

// Replace replaces the stored rows of the current batch's outside vertices on this rank by rows [outside x
// width]. They keep their epochs.
func (b *Batch) Replace(at halo.Slot, rows kernels.Mat) {
	for i, v := range b.cut.Outside.Own {
		b.store.Replace(at.Layer, b.epoch, at.Epoch, int(v), rows.Part(i, i+1).Host())
	}
}

// Begin sets the batch of each rank for the next pass, and its epoch.
func (b *Batch) Begin(epoch int, of []int) {
	b.epoch, b.sets, b.cut = epoch, of, b.cuts[of[b.store.o.Comm.Rank()]]
}

// Offer implements halo.Source. The first rows belong to the batch.
func (b *Batch) Offer(at halo.Slot, rows kernels.Mat, _, _ int) error {
	x := kernels.Fetch(b.ops, rows.Part(0, b.cut.Rows), &b.own)
	b.store.Push(at.Layer, b.epoch, at.Epoch, b.cut.First, x)
	return b.store.BeginPull(at.Layer, b.sets)
}

// Take implements halo.Source.
func (b *Batch) Take(at halo.Slot) (lo, hi int, err error) {
	n, width := b.cut.Outside.Len(), b.store.layers[at.Layer].width
	if err := b.store.EndPull(b.host[:n*width], b.epochs[:n]); err != nil {
		return 0, 0, err
	}
	kernels.Write(b.ops, b.rows(at), b.host[:n*width])
	b.blocks = blocksOf(b.blocks[:0], 0, b.epochs[:n])
	return 0, n, nil
}

// rows returns the ghosts of a layer.
func (b *Batch) rows(at halo.Slot) kernels.Mat {
	n, width := b.cut.Outside.Len(), b.store.layers[at.Layer].width
	return b.ghosts.Reshape(b.ghosts.Rows*b.ghosts.Cols, 1).Part(0, n*width).Reshape(n, width)
}

// View implements halo.Source. Blocks have the epochs that Begin was given.
func (b *Batch) View(at halo.Slot) (halo.View, error) {
	return halo.View{Rows: b.rows(at), Blocks: b.blocks}, nil
}
