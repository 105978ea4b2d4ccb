package halo

import (
	"time"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// direct is the transport that sends rows unchanged, without frames. Lengths follow from the plan,
// and ghost rows are received in place.
type direct struct {
	comm  comm.Comm
	team  Parallel
	stats *Stats
	parts int
	// Rows in transit: near of own vertices [len(SendRows) x maxCols], far of ghosts that are
	// not received in place.
	near, far []float32
	request   comm.Request

	sendCounts, recvCounts []int

	rows     codec.Rows // rows being packed or unpacked
	packed   []float32
	from, to int // rows of packed that are being unpacked
	add      bool
	pack     func(lo, hi int)
	put      func(lo, hi int)
}

func newDirect(c comm.Comm, parts int, team Parallel, near, far []float32, stats *Stats) *direct {
	d := &direct{
		comm: c, parts: parts, team: team, stats: stats, near: near, far: far,
		sendCounts: make([]int, parts), recvCounts: make([]int, parts),
	}
	d.pack, d.put = d.packRows, d.putRows
	return d
}

// buffers returns the buffers of a direction for packed sent rows, and for received rows that
// are not received in place.
func (d *direct) buffers(w direction) (out, in []float32) {
	if w.backward {
		return d.far, d.near
	}
	return d.near, d.far
}

// rowGrain is how many rows a worker copies at a time.
const rowGrain = 256

// coming returns the receive buffer of a direction.
func (d *direct) coming(w direction) []float32 {
	in := w.in.X
	if w.in.Index != nil {
		_, in = d.buffers(w)
	}
	return in[:w.in.Len*w.in.Cols]
}

func (d *direct) begin(w direction, _ codec.Key) error {
	start := time.Now()
	out, _ := d.buffers(w)
	if w.out.Index != nil {
		d.rows, d.packed = w.out, out
		d.team.Run(w.out.Len, rowGrain, d.pack)
	} else {
		out = w.out.X
	}
	d.stats.Encode += time.Since(start)
	if d.parts == 1 {
		return nil
	}
	for q := range d.parts {
		d.sendCounts[q] = 4 * w.out.Cols * rowsOfRank(w.outStart, q)
		d.recvCounts[q] = 4 * w.in.Cols * rowsOfRank(w.inStart, q)
		d.stats.count(d.sendCounts[q], d.sendCounts[q])
	}
	var err error
	d.request, err = d.comm.Ialltoallv(mapped.Bytes(out[:w.out.Len*w.out.Cols]), d.sendCounts,
		mapped.Bytes(d.coming(w)), d.recvCounts)
	return err
}

// packRows copies rows into packed.
func (d *direct) packRows(lo, hi int) {
	for i := lo; i < hi; i++ {
		copy(d.packed[i*d.rows.Cols:(i+1)*d.rows.Cols], d.rows.Row(i))
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

func (d *direct) end(w direction) error {
	if err := d.await(); err != nil {
		return err
	}
	if w.in.Index == nil {
		return nil
	}
	start := time.Now()
	_, d.packed = d.buffers(w)
	d.rows, d.add = w.in, w.add
	for q := range d.parts {
		// Rows of one rank are distinct, so they can be added in parallel.
		d.from, d.to = int(w.inStart[q]), int(w.inStart[q+1])
		d.team.Run(d.to-d.from, rowGrain, d.put)
	}
	d.stats.Decode += time.Since(start)
	return nil
}

// putRows copies or adds packed rows, from d.from on, to rows.
func (d *direct) putRows(lo, hi int) {
	for i := d.from + lo; i < d.from+hi; i++ {
		row := d.packed[i*d.rows.Cols : (i+1)*d.rows.Cols]
		if d.add {
			kernels.AddRow(d.rows.Row(i), row)
		} else {
			copy(d.rows.Row(i), row)
		}
	}
}
