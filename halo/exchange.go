package halo

import (
	"encoding/binary"
	"slices"
	"time"

	"siafu/graph/fault"
	"siafu/graph/mapped"
)

// Parallel runs body over parts of [0, n); kernels.Team is one.
type Parallel interface {
	Run(n, grain int, body func(lo, hi int))
}

// Stats count what an exchange has done on one rank, both directions.
type Stats struct {
	RawBytes  int64 // rows sent, as float32
	SentBytes int64 // the same as they travelled, frames included
	Messages  int64 // blocks sent to other ranks
	Encode    time.Duration
	Wait      time.Duration // for messages, after other work was done
	Decode    time.Duration
}

// Exchange moves rows along a plan, one exchange at a time. It holds the ghost
// rows: forward they arrive there, backward their gradients leave from there.
type Exchange struct {
	comm  Comm
	plan  *Plan
	codec Codec
	team  Parallel
	stats Stats

	ghosts []float32 // [Ghosts x maxCols]
	sums   []float32 // [Sums x maxCols]
	packed []float32 // [len(SendRows) x maxCols], rows of own vertices and sums

	x, dst   []float32 // of the exchange under way
	cols     int
	from, to int    // rows of packed that are being added
	state    string // "", forward, backward
	key      Key
	request  Request

	sendCounts, recvCounts []int
	blocks                 [][]byte // encoded, one a rank
	out, in                []byte   // of the exchange under way
	outRoom, inRoom        []byte   // for framed blocks
	eight                  []int    // counts of the lengths that travel first
	sizeOut, sizeIn        []byte
	failed                 []error // decoding, one a rank
	pack, add, unpack      func(lo, hi int)
	encode, decode         func(lo, hi int)
}

const (
	forward  = "forward"
	backward = "backward"
)

// NewExchange gives room for rows of up to maxCols floats. Memory comes from
// a; team does the copying.
func NewExchange(c Comm, p *Plan, codec Codec, team Parallel, a *mapped.Arena, maxCols int) *Exchange {
	if c.Size() != p.Parts {
		panic("halo: communicator and plan differ in size")
	}
	e := &Exchange{
		comm: c, plan: p, codec: codec, team: team,
		ghosts:     mapped.Make[float32](a, p.Ghosts*maxCols),
		sums:       mapped.Make[float32](a, p.Sums*maxCols),
		packed:     mapped.Make[float32](a, len(p.SendRows)*maxCols),
		sendCounts: make([]int, p.Parts), recvCounts: make([]int, p.Parts),
		blocks: make([][]byte, p.Parts), failed: make([]error, p.Parts),
		sizeOut: make([]byte, 8*p.Parts), sizeIn: make([]byte, 8*p.Parts),
	}
	e.eight = slices.Repeat([]int{8}, p.Parts)
	// Made once, so that an exchange allocates nothing.
	e.pack, e.add, e.unpack = e.packRows, e.addRows, e.unpackSums
	e.encode, e.decode = e.encodeBlocks, e.decodeBlocks
	return e
}

// Ghosts is the matrix of ghost rows [Ghosts x cols]: what EndForward filled,
// and what BeginBackward sends.
func (e *Exchange) Ghosts(cols int) []float32 { return e.ghosts[:e.plan.Ghosts*cols] }

// Sums is the matrix of the plan's sums [Sums x cols]: what BeginForward sends,
// and what EndReturn and EndBackward have filled with their gradients.
func (e *Exchange) Sums(cols int) []float32 { return e.sums[:e.plan.Sums*cols] }

// TakeStats returns the statistics and starts them again from zero.
func (e *Exchange) TakeStats() Stats {
	s := e.stats
	e.stats = Stats{}
	return s
}

// rowGrain is how many rows a worker copies at a time.
const rowGrain = 256

// BeginForward begins to send the rows of x [Own x cols] and of Sums that others
// hold as ghosts. They are copied: x may change when it returns. Collective.
func (e *Exchange) BeginForward(x []float32, cols int, k Key) error {
	e.enter(forward, cols, k)
	if len(x) < e.plan.Own*cols {
		panic("halo: short rows")
	}
	start := time.Now()
	e.x = x
	e.team.Run(len(e.plan.SendRows), rowGrain, e.pack)
	e.stats.Encode += time.Since(start)
	return e.begin(e.packed, e.plan.SendStart, e.plan.RecvStart, e.ghosts)
}

// Arrived tells, without waiting, whether End would not wait.
func (e *Exchange) Arrived() (bool, error) {
	if e.request == nil {
		return true, nil
	}
	began := time.Now()
	done, err := e.request.Test()
	if done {
		e.request = nil
	}
	e.stats.Wait += time.Since(began)
	return done, err
}

// Await waits until Arrived.
func (e *Exchange) Await() error {
	if e.request == nil {
		return nil
	}
	began := time.Now()
	err := e.request.Wait()
	e.request = nil
	e.stats.Wait += time.Since(began)
	return err
}

// EndForward waits for the ghosts' rows and returns them [Ghosts x cols]; they
// stand until the next exchange begins. Collective.
func (e *Exchange) EndForward() ([]float32, error) {
	err := e.end(forward, e.plan.RecvStart, e.ghosts)
	return e.Ghosts(e.cols), err
}

// BeginBackward begins to send the gradients of ghosts, which the caller has
// written to Ghosts(cols), to their owners. Collective.
func (e *Exchange) BeginBackward(cols int, k Key) error {
	e.enter(backward, cols, k)
	return e.begin(e.ghosts, e.plan.RecvStart, e.plan.SendStart, e.packed)
}

// EndBackward waits for the gradients that others hold of own vertices and
// adds them to own [Own x cols], in ascending order of ranks; those of sums are
// in Sums. Collective.
func (e *Exchange) EndBackward(own []float32) error {
	if len(own) < e.plan.Own*e.cols {
		panic("halo: short rows")
	}
	if err := e.EndReturn(); err != nil {
		return err
	}
	start := time.Now()
	e.dst = own
	for q := range e.plan.Parts {
		// Rows of one rank are distinct, so they can be added side by side.
		e.from, e.to = int(e.plan.SendStart[q]), int(e.plan.SendStart[q+1])
		e.team.Run(e.to-e.from, rowGrain, e.add)
	}
	e.stats.Decode += time.Since(start)
	return nil
}

// EndReturn is EndBackward without the sums: it waits for the gradients, which
// are Returned until the next exchange begins; those of sums are in Sums too.
// Collective.
func (e *Exchange) EndReturn() error {
	if err := e.end(backward, e.plan.SendStart, e.packed); err != nil || e.plan.Sums == 0 {
		return err
	}
	e.team.Run(e.plan.Parts, 1, e.unpack)
	return nil
}

// unpackSums copies what ranks lo..hi-1 have returned of sums.
func (e *Exchange) unpackSums(lo, hi int) {
	for q := lo; q < hi; q++ {
		to, end := int(e.plan.SumStart[q]), int(e.plan.SumStart[q+1])
		from := int(e.plan.SendStart[q+1]) - (end - to)
		copy(e.sums[to*e.cols:end*e.cols], e.packed[from*e.cols:])
	}
}

// Returned is the gradients that rank q has sent for the rows that it holds as
// ghosts, in the order of Plan.SendRows.
func (e *Exchange) Returned(q, cols int) []float32 {
	return e.packed[int(e.plan.SendStart[q])*cols : int(e.plan.SendStart[q+1])*cols]
}

func (e *Exchange) enter(state string, cols int, k Key) {
	if e.state != "" {
		panic("halo: an exchange is under way already")
	}
	if cols < 0 || e.plan.Ghosts*cols > len(e.ghosts) || e.plan.Sums*cols > len(e.sums) || len(e.plan.SendRows)*cols > len(e.packed) {
		panic("halo: rows are wider than the exchange has room for")
	}
	e.state, e.cols, e.key = state, cols, k
}

// packRows copies own rows and sums to their places in packed.
func (e *Exchange) packRows(lo, hi int) {
	for i := lo; i < hi; i++ {
		x, r := e.x, int(e.plan.SendRows[i])
		if r >= e.plan.Own {
			x, r = e.sums, r-e.plan.Own
		}
		copy(e.packed[i*e.cols:(i+1)*e.cols], x[r*e.cols:(r+1)*e.cols])
	}
}

// addRows adds rows of packed, counted from e.from, to own rows.
func (e *Exchange) addRows(lo, hi int) {
	for i := e.from + lo; i < e.from+hi; i++ {
		r := int(e.plan.SendRows[i])
		if r >= e.plan.Own {
			continue
		}
		dst, src := e.dst[r*e.cols:(r+1)*e.cols], e.packed[i*e.cols:(i+1)*e.cols]
		for j, v := range src {
			dst[j] += v
		}
	}
}

// begin sends the rows of src, rank q's from sendStart[q] on, and receives
// rows recvStart[q].. into dst.
func (e *Exchange) begin(src []float32, sendStart, recvStart []int64, dst []float32) error {
	if e.plan.Parts == 1 {
		return nil
	}
	raw, blocks := 0, 0
	for q := range e.plan.Parts {
		e.sendCounts[q] = 4 * e.cols * int(sendStart[q+1]-sendStart[q])
		e.recvCounts[q] = 4 * e.cols * int(recvStart[q+1]-recvStart[q])
		raw += e.sendCounts[q]
		if e.sendCounts[q] > 0 {
			blocks++
		}
	}
	e.stats.RawBytes += int64(raw)
	e.stats.Messages += int64(blocks)
	e.out, e.in = bytesOf(src[:int(sendStart[e.plan.Parts])*e.cols]), bytesOf(dst[:int(recvStart[e.plan.Parts])*e.cols])
	if e.framed() {
		if err := e.frame(src); err != nil {
			return err
		}
	}
	e.stats.SentBytes += int64(len(e.out))
	var err error
	e.request, err = e.comm.Ialltoallv(e.out, e.sendCounts, e.in, e.recvCounts)
	return err
}

// framed tells whether rows travel as blocks: not when they go as they are.
func (e *Exchange) framed() bool {
	_, plain := e.codec.(none)
	return !plain
}

// frame encodes the blocks of all ranks, tells everybody their lengths and
// makes room for what will come.
func (e *Exchange) frame(src []float32) error {
	start := time.Now()
	e.x = src
	e.team.Run(e.plan.Parts, 1, e.encode)
	e.outRoom = e.outRoom[:0]
	for q, b := range e.blocks {
		e.sendCounts[q] = len(b)
		binary.LittleEndian.PutUint64(e.sizeOut[8*q:], uint64(len(b)))
		e.outRoom = append(e.outRoom, b...)
	}
	e.out = e.outRoom
	e.stats.Encode += time.Since(start)
	return e.announce()
}

// announce exchanges the lengths of blocks.
func (e *Exchange) announce() error {
	r, err := e.comm.Ialltoallv(e.sizeOut, e.eight, e.sizeIn, e.eight)
	if err != nil {
		return err
	}
	if err := r.Wait(); err != nil {
		return err
	}
	total := 0
	for q := range e.recvCounts {
		n := binary.LittleEndian.Uint64(e.sizeIn[8*q:])
		if most := uint64(2*e.recvCounts[q] + 1<<16); n > most {
			return fault.New(fault.Runtime, "halo", "", "rank %d announces a block of %d bytes for %d bytes of rows", q, n, e.recvCounts[q])
		}
		e.recvCounts[q] = int(n)
		total += int(n)
	}
	e.inRoom = slices.Grow(e.inRoom[:0], total)
	e.in = e.inRoom[:total]
	return nil
}

// encodeBlocks makes the blocks of ranks lo..hi-1 from the rows in e.x.
func (e *Exchange) encodeBlocks(lo, hi int) {
	start, ids := e.plan.SendStart, e.sendIDs
	if e.state == backward {
		start, ids = e.plan.RecvStart, e.ghostIDs
	}
	for q := lo; q < hi; q++ {
		from, to := int(start[q]), int(start[q+1])
		e.blocks[q] = e.blocks[q][:0]
		if from == to {
			continue
		}
		k := e.key
		k.Vertices = ids(from, to)
		e.blocks[q] = EncodeBlock(e.blocks[q], e.codec, e.x[from*e.cols:to*e.cols], to-from, e.cols, k)
	}
}

func (e *Exchange) ghostIDs(from, to int) []uint32 { return e.plan.GhostIDs[from:to] }

// sendIDs are the dataset ids of rows from..to-1 of packed.
func (e *Exchange) sendIDs(from, to int) []uint32 {
	if e.codec.Lossless() {
		return nil // nothing is drawn
	}
	ids := make([]uint32, 0, to-from)
	for _, r := range e.plan.SendRows[from:to] {
		ids = append(ids, e.plan.OwnIDs[r])
	}
	return ids
}

// end waits for the messages and, where they are framed, decodes them into
// the rows start[q].. of dst.
func (e *Exchange) end(state string, start []int64, dst []float32) error {
	if e.state != state {
		panic("halo: End without its Begin")
	}
	if e.plan.Parts == 1 {
		e.state = ""
		return nil
	}
	err := e.Await()
	e.state = ""
	if err != nil || !e.framed() {
		return err
	}
	began := time.Now()
	e.dst = dst
	e.key.Backward = state == backward
	e.team.Run(e.plan.Parts, 1, e.decode)
	e.stats.Decode += time.Since(began)
	for q, err := range e.failed {
		if err != nil {
			e.failed[q] = nil
			return fault.New(fault.Runtime, "halo", "", "rank %d: the %s block from rank %d is damaged: %v", e.comm.Rank(), state, q, err)
		}
	}
	return nil
}

// decodeBlocks decodes what came from ranks lo..hi-1.
func (e *Exchange) decodeBlocks(lo, hi int) {
	start := e.plan.RecvStart
	if e.key.Backward {
		start = e.plan.SendStart
	}
	for q := lo; q < hi; q++ {
		at := 0
		for _, n := range e.recvCounts[:q] {
			at += n
		}
		from, to := int(start[q]), int(start[q+1])
		if from == to && e.recvCounts[q] == 0 {
			continue
		}
		e.failed[q] = DecodeBlock(e.dst[from*e.cols:to*e.cols], e.codec, to-from, e.cols, e.in[at:at+e.recvCounts[q]])
	}
}
