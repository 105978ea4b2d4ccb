package predict

import (
	"slices"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// layer has the sampled own rows of a layer.
type layer struct {
	halo.Shape
	now    []float32 // of the current epoch [sampled x Width]
	pushed []float32 // of epochs in which rows were sent [len(epochs) x sampled x Width]
	blocks []block   // in place of pushed, if rows are compressed
	as     *compression
	epochs []int32   // 0: none
	kept   []float32 // of the model, for each of epochs

	predicts bool // in the current epoch

	setMap  func(m kernels.Mat, version int) // result of Options.Maps
	maps    bool                             // in the current epoch: gathers apply a map
	version int                              // of the received rows of epoch mapped
	mapped  int32
}

// newLayer allocates a layer with n sampled rows. now is memory for the current ones that layers share;
// nil: the layer has its own.
func newLayer(shape halo.Shape, n int, now []float32, k *kind, as *compression, o Options) *layer {
	slots := slotsOf(k, o)
	l := &layer{Shape: shape, epochs: mapped.Make[int32](o.Arena, slots), as: as}
	if now == nil {
		now = mapped.Make[float32](o.Arena, n*shape.Width)
	}
	l.now = now[:n*shape.Width]
	if as != nil {
		l.blocks = make([]block, slots)
	} else {
		l.pushed = mapped.Make[float32](o.Arena, slots*n*shape.Width)
	}
	if k.kept != nil {
		l.kept = mapped.Make[float32](o.Arena, slots*k.kept(shape.Width))
	}
	return l
}

// slotsOf returns the number of epochs whose own rows a layer stores. A fitted kind stores rows after the
// predictions of their epoch, and thus needs those of earlier epochs only.
func slotsOf(k *kind, o Options) int {
	if k.cell != nil {
		return Windows(o.Timing)
	}
	return max(1, (o.Timing.MaxAge+o.Timing.Period-1)/o.Timing.Period)
}

// record stores sampled rows of the current epoch, or without samples all rows.
func (l *layer) record(rows []float32, sampled []uint32) {
	w := l.Width
	if sampled == nil {
		copy(l.now, rows)
		return
	}
	for k, r := range sampled {
		copy(l.now[k*w:(k+1)*w], rows[int(r)*w:(int(r)+1)*w])
	}
}

// push stores the current rows as those of an epoch in which rows are sent, in place of the
// oldest, and averages them as the policy does. It uses a buffer of two epochs.
func (l *layer) push(epoch int, keep float32, buffer []float32) {
	at, last := 0, 0
	for k, e := range l.epochs {
		if e < l.epochs[at] {
			at = k
		}
		if e > l.epochs[last] {
			last = k
		}
	}
	rows, before := l.now, []float32(nil)
	if keep != 0 {
		before = l.load(last, buffer)
	} else if k := l.as.before(l.epochs, epoch); k >= 0 {
		before = l.load(k, buffer)
	}
	if keep != 0 {
		rows = buffer[len(l.now) : 2*len(l.now)]
		for i, x := range l.now {
			rows[i] = float32(keep*before[i]) + float32((1-keep)*x)
		}
	}
	clear(l.keptAt(at))
	l.epochs[at] = int32(epoch)
	if l.as != nil {
		l.as.put(&l.blocks[at], rows, before, l.Width)
		return
	}
	copy(l.slot(at), rows)
}

// load returns the rows of the k-th stored epoch: zeros if it has none. Compressed rows are decoded
// to buffer.
func (l *layer) load(k int, buffer []float32) []float32 {
	switch {
	case l.as == nil:
		return l.slot(k)
	case l.epochs[k] == 0:
		clear(buffer[:len(l.now)])
	default:
		l.as.decode(&l.blocks[k], buffer[:len(l.now)], l.Width)
	}
	return buffer[:len(l.now)]
}

// compressed returns the bytes of compressed rows.
func (l *layer) compressed() (bytes int64) {
	for _, b := range l.blocks {
		bytes += int64(cap(b.data))
	}
	return bytes
}

// recall stores, in place of all others, the rows before the current ones, unless their epochs differ.
func (l *layer) recall(stored func(layer, row int, dst []float32) (epoch int), sampled []uint32) {
	clear(l.kept)
	for k, r := range sampled {
		epoch := int32(stored(l.Layer, int(r), l.pushed[k*l.Width:(k+1)*l.Width]))
		if k == 0 {
			l.epochs[0] = epoch
		} else if epoch != l.epochs[0] {
			l.epochs[0] = 0
		}
	}
}

func (l *layer) slot(k int) []float32 {
	n := len(l.now)
	return l.pushed[k*n : (k+1)*n]
}

func (l *layer) keptAt(k int) []float32 {
	n := len(l.kept) / len(l.epochs)
	return l.kept[k*n : (k+1)*n]
}

// at returns the own rows of an epoch in which rows were sent, nil if they are not stored, and what
// the model keeps for them. Compressed rows are decoded to buffer.
func (l *layer) at(epoch int32, buffer []float32) (rows, kept []float32) {
	if k := slices.Index(l.epochs, epoch); k >= 0 && epoch > 0 {
		return l.load(k, buffer), l.keptAt(k)
	}
	return nil, nil
}

// stored returns the own rows of an epoch in which rows were sent, nil if they are not stored. They
// must not be compressed.
func (l *layer) stored(epoch int32) []float32 {
	if k := slices.Index(l.epochs, epoch); k >= 0 && epoch > 0 {
		return l.slot(k)
	}
	return nil
}

func (l *layer) forget() {
	l.predicts, l.maps, l.mapped = false, false, 0
	for _, x := range [][]float32{l.now, l.pushed, l.kept} {
		clear(x)
	}
	clear(l.epochs)
}
