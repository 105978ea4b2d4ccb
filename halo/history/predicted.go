package history

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// predicted predicts the history of Variates with a source that wraps all rows of the history.
type predicted struct {
	pulled
	source halo.Collective // wraps this source
	width  int
	rows   []float32 // of own vertices and ghosts, as stored [(own + ghosts) x width]
	blocks []halo.Block

	sample  []float32 // rows of the step to learn from [len(sampled) x width]
	sampled []uint32  // their vertices
	known   int       // number of these
}

// Predict makes v predict the history before it is used. wrap returns a source that predicts the rows
// of its argument, whose View has the history of own vertices and then of ghosts. This source is offered
// at most examples own rows of each step, whose stored rows are of the epoch before; Stored reads
// these. Memory comes from a.
func (v *Variates) Predict(wrap func(inner halo.Collective) halo.Collective, examples int, a *mapped.Arena) {
	p, width := v.store.o.Plan, 0
	for _, l := range v.store.o.Shapes {
		width = max(width, l.Width)
	}
	a = a.For(halo.Ghosts)
	v.predicts = &predicted{
		pulled: v.pulled, rows: mapped.Make[float32](a, (p.Own+p.Ghosts)*width),
		sample: mapped.Make[float32](a, examples*width), sampled: mapped.Make[uint32](a, examples),
	}
	v.predicts.source = wrap(v.predicts)
}

// Stored reads the stored row of the i-th row of the step to learn from [width], and returns its epoch,
// 0 if the step has fewer rows.
func (v *Variates) Stored(layer, i int, dst []float32) (epoch int) {
	if i >= v.predicts.known {
		return 0
	}
	return v.store.Own(layer, int(v.predicts.sampled[i]), dst)
}

// Offer implements halo.Source.
func (p *predicted) Offer(halo.Slot, kernels.Mat, int, int) error { return nil }

// Take implements halo.Source.
func (p *predicted) Take(halo.Slot) (lo, hi int, err error) { return 0, len(p.rows) / p.width, nil }

// View implements halo.Source.
func (p *predicted) View(halo.Slot) (halo.View, error) {
	n := p.store.o.Plan.Own + p.store.o.Plan.Ghosts
	return halo.View{Rows: kernels.HostMat(n, p.width, p.rows[:n*p.width]), Blocks: p.blocks}, nil
}

// predict sets ownRows and ghostRows to predictions from the history. The step has rows of the field's
// first n vertices.
func (v *Variates) predict(at halo.Slot, n int) error {
	p, w, own := v.predicts, v.layer.width, v.store.o.Plan.Own
	p.width, p.known = w, 0
	for i, u := range v.field.Rows[:n] {
		if p.known < len(p.sampled) && int(v.layer.epochs[u]) == v.epoch-1 && v.epoch > 1 {
			copy(p.sample[p.known*w:(p.known+1)*w], v.made[i*w:(i+1)*w])
			p.sampled[p.known] = u
			p.known++
		}
	}
	copy(p.rows, v.ownRows[:own*w])
	copy(p.rows[own*w:], v.ghostRows)
	p.blocks = blocksOf(p.blocks[:0], 0, v.layer.epochs)
	p.blocks = blocksOf(p.blocks, own, v.epochs)
	if err := p.source.Offer(at, kernels.HostMat(len(p.sampled), w, p.sample[:len(p.sampled)*w]), 0, len(p.sampled)); err != nil {
		return err
	}
	if _, _, err := p.source.Take(at); err != nil {
		return err
	}
	view, err := p.source.View(at)
	rows := view.Rows.Host()
	v.ownRows, v.ghostRows = rows[:own*w], rows[own*w:]
	return err
}

// blocksOf appends the blocks of rows, from row first on, with the given epochs. Rows of epoch 0 are in
// no block.
func blocksOf(list []halo.Block, first int, epochs []uint32) []halo.Block {
	for i, epoch := range epochs {
		switch last := len(list) - 1; {
		case epoch == 0:
		case last >= 0 && list[last].Epoch == int(epoch) && list[last].First+list[last].Rows == first+i:
			list[last].Rows++
		default:
			list = append(list, halo.Block{First: first + i, Rows: 1, Epoch: int(epoch)})
		}
	}
	return list
}
