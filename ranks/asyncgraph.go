package ranks

import (
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/kernels"
)

// published is what the vertices of a rank show each other of one layer that
// gathers: the newest rows and gradients of every interval and every ghost,
// whatever epochs they are of.
type published struct {
	width     int
	gradWidth int
	attending *attending // nil for coefficients

	rows   []float32   // emitted by own vertices [own x width]
	ghosts []float32   // emitted by ghosts [ghosts x width]
	grads  []float32   // of what own vertices gathered [own x gradWidth]
	theirs [][]float32 // by graph rank: its share of the gradients of the rows sent there

	// The epochs of the newest rows from each interval of each rank, by the rank
	// and by the place of its first row; and of gradients, by rank.
	rowsFrom  []map[int]int
	gradsFrom []int
	// How many ghosts, and ranks with gradients, have never been heard of.
	rowsMissing, gradsMissing int
	// By epoch, how many intervals have published gradients.
	ready map[int]int
}

// publish gives room for layer l.
func (e *engine) publish(l, width int) *published {
	plan, own := e.graph.plan, e.shard.NumOwn()
	attending, gradWidth := e.attending(l), width
	if attending != nil {
		gradWidth = attending.Columns()
	}
	p := &published{
		width: width, gradWidth: gradWidth, attending: attending,
		rows: mapped.Make[float32](e.arena, own*width), grads: mapped.Make[float32](e.arena, own*gradWidth),
		ghosts: mapped.Make[float32](e.arena, plan.Ghosts*width),
		theirs: make([][]float32, plan.Parts), rowsFrom: make([]map[int]int, plan.Parts), gradsFrom: make([]int, plan.Parts), rowsMissing: plan.Ghosts, ready: map[int]int{},
	}
	for q := range plan.Parts {
		p.rowsFrom[q] = map[int]int{}
		if sends := int(plan.SendStart[q+1] - plan.SendStart[q]); sends > 0 {
			p.theirs[q] = mapped.Make[float32](e.arena, sends*width)
			p.gradsMissing++
		}
	}
	return p
}

// scatter sends the boundary rows of an interval to those who hold them as
// ghosts.
func (e *engine) scatter(i *interval, l int) error {
	p, plan := e.layers[l], e.graph.plan
	copy(i.part(p.rows, p.width), i.h)
	for q := range plan.Parts {
		list := plan.SendRows[plan.SendStart[q]:plan.SendStart[q+1]]
		from, to := boundary(list, i)
		if from == to {
			continue
		}
		packed := e.floats((to - from) * p.width)
		for k, v := range list[from:to] {
			copy(packed[k*p.width:(k+1)*p.width], p.rows[int(v)*p.width:])
		}
		if err := e.send(q, wire{kind: wireRows, layer: l, epoch: i.epoch, first: from, width: p.width, rows: packed}); err != nil {
			return err
		}
	}
	return nil
}

// gather is the interval's rows of Â times what is there.
func (e *engine) gather(i *interval, l int) ([]float32, error) {
	if err := e.bounded(i, l); err != nil {
		return nil, err
	}
	p, c := e.layers[l], &e.graph.coef
	if p.attending != nil {
		return e.attend(i, l), nil
	}
	dst := e.room(i, l, i.rows()*p.width)
	m := e.ownEdges(i)
	m.RowScale, m.ColScale, m.SelfLoops = cut(c.Row, i), c.Col, c.SelfLoops
	e.graph.spmm(dst, p.width, m, p.rows, false)
	if e.shard.NumGhosts() > 0 {
		m = e.ghostEdges(i)
		m.RowScale, m.ColScale = cut(c.Row, i), c.Col
		e.graph.spmm(dst, p.width, m, p.ghosts, true)
	}
	return dst, nil
}

// bounded checks what the staleness bound promises: no row of a ghost is of an
// epoch before that which everybody had finished when the interval started,
// and none is ahead by more than the bound.
func (e *engine) bounded(i *interval, l int) error {
	s := e.setting.Staleness
	for q, from := range e.layers[l].rowsFrom {
		for first, epoch := range from {
			if epoch < i.epoch-1-s || epoch > i.epoch+1+s {
				return fault.New(fault.Runtime, "train", "", "an interval of rank %d in epoch %d would gather rows of rank %d, from row %d on, of epoch %d, which staleness %d does not allow",
					e.world.Rank(), i.epoch, q, first, epoch, s)
			}
		}
	}
	return nil
}

// cut is the interval's part of a scale, nil for nil.
func cut(scale []float32, i *interval) []float32 {
	if scale == nil {
		return nil
	}
	return scale[i.lo:i.hi]
}

// edges are those along which gradients of layer l go back.
func (e *engine) edges(l int) *shard.Transposed {
	if l == len(e.layers)-1 && e.graph.trained != nil {
		return e.graph.trained
	}
	return e.graph.transposed
}

// scatterGrad publishes an interval's gradient of what it gathered. With the
// rank's last interval of that epoch, the gradients of ghosts go to their
// owners.
func (e *engine) scatterGrad(i *interval, l int) error {
	p, plan := e.layers[l], e.graph.plan
	copy(i.part(p.grads, p.gradWidth), i.h)
	if p.attending != nil {
		e.noteDots(i, l)
	}
	if p.ready[i.epoch]++; p.ready[i.epoch] < len(e.intervals) {
		return nil
	}
	delete(p.ready, i.epoch)
	if plan.Ghosts == 0 {
		return nil
	}
	ghosts := e.floats(plan.Ghosts * p.width)
	e.clock.lap("∇SC")
	if p.attending != nil {
		e.attendGhostGrads(l, ghosts)
	} else {
		e.graph.ghostGrads(e.edges(l), ghosts, p.grads, p.width)
	}
	e.clock.lap("∇GA")
	for q := range plan.Parts {
		from, to := int(plan.RecvStart[q]), int(plan.RecvStart[q+1])
		if from == to {
			continue
		}
		m := wire{kind: wireGrads, layer: l, epoch: i.epoch, width: p.width, rows: ghosts[from*p.width : to*p.width]}
		if err := e.send(q, m); err != nil {
			return err
		}
	}
	return nil
}

// gatherGrad is the interval's rows of Âᵀ times the gradients that are there.
func (e *engine) gatherGrad(i *interval, l int) []float32 {
	p, t, c, plan := e.layers[l], e.edges(l), &e.graph.coef, e.graph.plan
	dst := e.room(i, len(e.layers)+l, i.rows()*p.width)
	if p.attending != nil {
		e.attendGrad(i, l, dst)
	} else {
		e.graph.spmm(dst, p.width, kernels.Gather{
			Begin: t.OwnBegin[i.lo:i.hi], End: t.OwnEnd[i.lo:i.hi], Cols: t.OwnCols,
			RowScale: cut(c.Col, i), ColScale: c.Row, SelfLoops: c.SelfLoops, First: uint32(i.lo),
		}, p.grads, false)
	}
	for q, theirs := range p.theirs { // ascending, so that the order of sums is fixed
		list := plan.SendRows[plan.SendStart[q]:plan.SendStart[q+1]]
		from, to := boundary(list, i)
		for k := from; k < to; k++ {
			row := dst[(int(list[k])-i.lo)*p.width:][:p.width]
			for j, v := range theirs[k*p.width : (k+1)*p.width] {
				row[j] += v
			}
		}
	}
	return dst
}

// receive puts rows or gradients that have arrived in their place.
func (e *engine) receive(m wire, from int) error {
	plan := e.graph.plan
	if m.layer < 0 || m.layer >= len(e.layers) || e.layers[m.layer] == nil || from >= plan.Parts {
		return damaged(m, from)
	}
	p := e.layers[m.layer]
	if m.width != p.width || m.width == 0 || len(m.rows)%p.width != 0 {
		return damaged(m, from)
	}
	count := len(m.rows) / p.width
	if m.kind == wireGrads {
		if len(m.rows) != len(p.theirs[from]) {
			return damaged(m, from)
		}
		copy(p.theirs[from], m.rows)
		if p.gradsFrom[from] == 0 {
			p.gradsMissing--
		}
		p.gradsFrom[from] = m.epoch
		return nil
	}
	start := int(plan.RecvStart[from]) + m.first
	if m.first < 0 || start+count > int(plan.RecvStart[from+1]) {
		return damaged(m, from)
	}
	copy(p.ghosts[start*p.width:(start+count)*p.width], m.rows)
	if p.rowsFrom[from][m.first] == 0 {
		p.rowsMissing -= count
	}
	p.rowsFrom[from][m.first] = m.epoch
	return nil
}

func damaged(m wire, from int) error {
	return fault.New(fault.Runtime, "train", "", "rank %d sent %d values from row %d on of layer %d, %d wide, which fit nowhere",
		from, len(m.rows), m.first, m.layer, m.width).Then("partition the dataset again, and run the same siafu on all ranks")
}
