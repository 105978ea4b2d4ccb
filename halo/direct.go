package halo

import (
	"time"

	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/kernels"
)

// direct carries rows as they are, without frames: their lengths follow from
// the plan, and ghosts' rows arrive where they belong.
type direct struct {
	comm    comm.Comm
	plan    *Plan
	team    Parallel
	stats   *Stats
	packed  []float32 // [len(SendRows) x maxCols], rows of own vertices
	request comm.Request

	sendCounts, recvCounts []int

	own      codec.Rows // whose rows are packed or added to
	from, to int        // rows of packed that are being added
	pack     func(lo, hi int)
	add      func(lo, hi int)
}

func newDirect(c comm.Comm, p *Plan, team Parallel, a *mapped.Arena, maxCols int, stats *Stats) *direct {
	d := &direct{
		comm: c, plan: p, team: team, stats: stats,
		packed:     mapped.Make[float32](a, len(p.SendRows)*maxCols),
		sendCounts: make([]int, p.Parts), recvCounts: make([]int, p.Parts),
	}
	d.pack, d.add = d.packRows, d.addRows
	return d
}

// rowGrain is how many rows a worker copies at a time.
const rowGrain = 256

func (d *direct) begin(w way, _ codec.Key) error {
	start := time.Now()
	out, in := w.out.X, w.in.X
	if w.add {
		in = d.packed
	}
	if w.out.Index != nil {
		d.own = w.out
		d.team.Run(w.out.Len, rowGrain, d.pack)
		out = d.packed
	}
	d.stats.Encode += time.Since(start)
	if d.plan.Parts == 1 {
		return nil
	}
	for q := range d.plan.Parts {
		d.sendCounts[q] = 4 * w.out.Cols * span(w.outStart, q)
		d.recvCounts[q] = 4 * w.in.Cols * span(w.inStart, q)
		d.stats.count(d.sendCounts[q], d.sendCounts[q])
	}
	var err error
	d.request, err = d.comm.Ialltoallv(mapped.Bytes(out[:w.out.Len*w.out.Cols]), d.sendCounts,
		mapped.Bytes(in[:w.in.Len*w.in.Cols]), d.recvCounts)
	return err
}

// packRows copies own rows to their places in packed.
func (d *direct) packRows(lo, hi int) {
	for i := lo; i < hi; i++ {
		copy(d.packed[i*d.own.Cols:(i+1)*d.own.Cols], d.own.Row(i))
	}
}

func (d *direct) arrived() (bool, error) {
	if d.request == nil {
		return true, nil
	}
	done, err := d.request.Test()
	if done {
		d.request = nil
	}
	return done, err
}

func (d *direct) await() error {
	if d.request == nil {
		return nil
	}
	start := time.Now()
	err := d.request.Wait()
	d.request = nil
	d.stats.Wait += time.Since(start)
	return err
}

func (d *direct) end(w way) error {
	if err := d.await(); err != nil {
		return err
	}
	if !w.add {
		return nil
	}
	start := time.Now()
	d.own = w.in
	for q := range d.plan.Parts {
		// Rows of one rank are distinct, so they can be added side by side.
		d.from, d.to = int(w.inStart[q]), int(w.inStart[q+1])
		d.team.Run(d.to-d.from, rowGrain, d.add)
	}
	d.stats.Decode += time.Since(start)
	return nil
}

// addRows adds rows of packed, counted from d.from, to own rows.
func (d *direct) addRows(lo, hi int) {
	for i := d.from + lo; i < d.from+hi; i++ {
		kernels.AddRow(d.own.Row(i), d.packed[i*d.own.Cols:(i+1)*d.own.Cols])
	}
}
