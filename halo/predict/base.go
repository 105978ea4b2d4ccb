package predict

import (
	"math"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// sampleRows chooses n own rows at equal distances, and holds out every eighth: the last ones.
func sampleRows(n, own int, a *mapped.Arena) (sampled []uint32, learned int) {
	sampled = mapped.Make[uint32](a, n)
	learned = n - n/heldOut
	a.Fill(func() {
		next := [2]int{0, learned}
		for k := range n {
			to := 0
			if k%heldOut == heldOut-1 {
				to = 1
			}
			sampled[next[to]] = uint32(k * own / n)
			next[to]++
		}
	})
	return sampled, learned
}

// findEpochs sets the epochs of rows: those of the ghosts, and of own rows such that they are of the
// same epochs. It returns the newest one, 0 without any.
func (r *recurrent) findEpochs(view halo.View) (newest int) {
	own, ghosts := r.graph.own, r.graph.rows-r.graph.own
	clear(r.epochs)
	view.ForEachBlock(func(b halo.Block) {
		newest = max(newest, b.Epoch)
		for i := b.First; i < b.First+b.Rows; i++ {
			r.epochs[own+i] = int32(b.Epoch)
		}
	})
	for v := range own {
		if ghosts > 0 {
			r.epochs[v] = r.epochs[own+v*ghosts/own]
		}
		if r.epochs[v] == 0 {
			r.epochs[v] = int32(newest)
		}
	}
	r.uniform = true
	for _, e := range r.epochs {
		r.uniform = r.uniform && int(e) == newest
	}
	return newest
}

// hasOwnRows reports whether own rows of the epochs are stored.
func (r *recurrent) hasOwnRows(n *network) bool {
	last := int32(0)
	for _, e := range r.epochs[:r.graph.own] {
		if e != last && n.stored(e) == nil {
			return false
		}
		last = e
	}
	return true
}

// weigh sets ages in an epoch: relative to the greatest one if fresh, otherwise in units of the
// policy's interval. It reports whether any is not 0.
func (r *recurrent) weigh(epoch int) bool {
	most := 0
	for _, e := range r.epochs {
		if e > 0 {
			most = max(most, epoch-int(e))
		}
	}
	unit := r.o.Timing.Interval
	if r.o.Fresh {
		unit = most
	}
	for v, e := range r.epochs {
		r.age[v] = 0
		if e > 0 && most > 0 {
			r.age[v] = float32(epoch-int(e)) / float32(unit)
		}
	}
	return most > 0
}

// baseRows sets base to own rows as readers have them.
func (r *recurrent) baseRows(lo, hi int) {
	n, w := r.assembling.n, r.assembling.n.Width
	for v := lo; v < hi; v++ {
		r.baseRow(n, r.base[v*w:(v+1)*w], v, r.assembling.epoch)
	}
}

// baseRow sets dst to an own row as readers have it in an epoch.
func (r *recurrent) baseRow(n *network, dst []float32, v, epoch int) {
	copy(dst, n.stored(r.epochs[v])[v*n.Width:])
	if by := r.o.Timing.Decay; by != 1 {
		kernels.ScaleRow(dst[:n.Width-n.Scores], float32(math.Pow(float64(by), float64(epoch-int(r.epochs[v])))))
	}
}
