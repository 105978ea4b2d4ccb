package halo

import (
	"time"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Parallel runs body over parts of [0, n); kernels.Team is one.
type Parallel interface {
	Run(n, grain int, body func(lo, hi int))
}

// Purposes of arrays.
const (
	Ghosts  = "ghost rows"
	Buffers = "exchange buffers"
	FedBack = "lost in codecs, fed back"
)

// Key identifies the exchange of rows. The exchange sets Backward and From.
type Key = codec.Key

// Stats counts the traffic of an exchange on one rank, in both directions.
type Stats struct {
	RawBytes  int64 // rows sent, as float32
	SentBytes int64 // rows sent, after encoding and with frames
	Messages  int64 // blocks sent to other ranks
	Encode    time.Duration
	Wait      time.Duration // exposed communication: time in End without other work
	Decode    time.Duration
}

// count adds a message with the given raw and sent bytes.
func (s *Stats) count(raw, sent int) {
	if raw > 0 {
		s.RawBytes += int64(raw)
		s.SentBytes += int64(sent)
		s.Messages++
	}
}

// Exchange moves rows along a plan, one exchange at a time. It has one matrix for ghosts: forward,
// the ghost rows are received into the matrix; backward, the gradients of ghosts are sent from it.
type Exchange struct {
	plan        *Plan
	transport   transport // direct or chunked
	direct      *direct
	chunked     *chunked     // nil until there is a codec
	deviceCodec *deviceCodec // nil until rows are first encoded on the device
	comm        comm.Comm
	team        Parallel
	ops         kernels.Ops
	arena       *mapped.Arena
	stats       Stats
	ghosts      kernels.Mat // [Ghosts x maxCols]
	sums        kernels.Mat // [Sums x maxCols]
	staged      staged
	maxCols     int
	// If the codec rounds at random: the dataset ids of SendRows, and which rows are sums (nil: none).
	sendIDs  []uint32
	sendSums []bool

	tag       int         // of messages through codecs
	direction direction   // of the current exchange
	state     string      // "", forward, backward
	discarded kernels.Mat // receives the gradients that Drop discards; empty before the first Drop

	others     []*Exchange   // along other plans (Along)
	observer   Observer      // nil: none
	key        Key           // of the current exchange
	beganAt    time.Time     // when its rows were sent
	waitBefore time.Duration // Stats.Wait at that time
}

// Observer is notified of exchanges by the caller of Begin and End.
type Observer interface {
	// Leaving is called at the end of Begin with the sent rows, which are valid until it
	// returns, and the number of received rows.
	Leaving(k Key, rows codec.Rows, arriving int)
	// Arrived is called at the start of End with the time since Begin, and the part of it
	// that the rank spent waiting.
	Arrived(k Key, travel, waited time.Duration)
}

// Observe sets the observer of later exchanges.
func (e *Exchange) Observe(o Observer) {
	e.observer = o
	for _, x := range e.others {
		x.Observe(o)
	}
}

const (
	forward  = "forward"
	backward = "backward"
)

// direction is one direction of an exchange: the sent rows, from outStart[q] on for rank q,
// and the destination of received rows, which are set or added.
//
// If rows are encoded on the device, out and in have only their numbers; deviceOut and
// deviceIn have the rows.
type direction struct {
	backward, add     bool
	out, in           codec.Rows
	outStart, inStart []int64
	// If only some rows are sent: the index of each row among all outAll rows, for which codec
	// errors are stored; nil: all rows are sent.
	outIndices []uint32
	outAll     int
	// By rank: whether the rows for the rank are unchanged. Such a rank gets a message without
	// rows. nil: rows are sent to all ranks.
	unchanged []bool

	onDevice  bool // out and in are in device memory, which the communicator accepts
	coded     bool
	deviceOut kernels.Outgoing
	deviceIn  kernels.Incoming
}

func (w *direction) name() string {
	if w.backward {
		return backward
	}
	return forward
}

// rowsOfRank returns the number of rows of rank q.
func rowsOfRank(start []int64, q int) int { return int(start[q+1] - start[q]) }

// transport moves rows in one direction.
type transport interface {
	// begin starts to send and receive. The sent rows may change afterwards.
	begin(w direction, k codec.Key) error
	// arrived reports, without waiting, whether all rows have arrived. It progresses
	// transfers: MPI does so only in calls.
	arrived() (bool, error)
	// await returns when all rows have arrived.
	await() error
	// end waits for all rows and all sends, and stores the rows.
	end(w direction) error
	// capture waits for all rows, and copies them as they were sent; resume continues from
	// such a copy.
	capture(w direction) ([]RankBlock, error)
	resume(w direction, blocks []RankBlock) error
}

// NewExchange allocates an exchange for rows of up to maxCols floats in the memory of ops.
// Memory comes from a. team copies, encodes and decodes.
func NewExchange(c comm.Comm, p *Plan, rows codec.Codec, team Parallel, ops kernels.Ops, a *mapped.Arena, maxCols int) *Exchange {
	if c.Size() != p.Parts {
		panic("halo: communicator and plan differ in size")
	}
	e := &Exchange{plan: p, comm: c, team: team, ops: ops, arena: a, maxCols: maxCols}
	e.allocStaging()
	e.Use(rows)
	return e
}

// Along returns an exchange between the same ranks along another plan, with rows of up to maxCols
// floats. It has e's codec and observer, also when those change, and e's statistics include its
// own. The two exchange rows of different layers.
func (e *Exchange) Along(p *Plan, rows codec.Codec, maxCols int) *Exchange {
	x := NewExchange(e.comm, p, rows, e.team, e.ops, e.arena, maxCols)
	e.others = append(e.others, x)
	x.shareErrors(e)
	return x
}

// shareErrors makes e accumulate codec errors in the same place as another exchange.
func (e *Exchange) shareErrors(with *Exchange) {
	if e.chunked != nil && with.chunked != nil && with.chunked.codecErrors != nil {
		e.FeedBack(with.chunked.codecErrors)
	}
}

// Use sets the codec of later exchanges. It reuses the memory of earlier ones. Collective,
// between two exchanges.
func (e *Exchange) Use(rows codec.Codec) {
	e.use(rows)
	for _, x := range e.others {
		x.use(rows)
		x.shareErrors(e)
	}
}

func (e *Exchange) use(rows codec.Codec) {
	if e.state != "" {
		panic("halo: an exchange is under way already")
	}
	if !rows.Lossless() && e.sendIDs == nil {
		e.identify()
	}
	if rows.ID() == (codec.ID{}) {
		e.useDirect()
		return
	}
	if e.chunked == nil {
		e.chunked = newChunked(e.comm, e.team, e.ops, e.arena.For(FedBack), &e.stats)
		e.chunked.tag = e.tag
	}
	e.chunked.use(rows)
	e.transport = e.chunked
	if !e.useDeviceCodec() {
		e.hostStaging()
	}
}

// identify sets the ids by which codecs round sent rows at random.
func (e *Exchange) identify() {
	p := e.plan
	e.sendIDs = p.SendIDs(e.arena.For(Buffers))
	if p.Sums == 0 {
		return
	}
	e.sendSums = make([]bool, len(p.SendRows))
	for i, r := range p.SendRows {
		e.sendSums[i] = int(r) >= p.Own
	}
}

func (e *Exchange) useDirect() {
	if e.direct == nil {
		cols := e.maxCols
		if e.ops.Remote() {
			cols = 0 // rows are sent and received packed
		}
		near := mapped.Make[float32](e.arena.For(Buffers), len(e.plan.SendRows)*cols)
		e.direct = newDirect(e.comm, e.plan.Parts, e.team, near, nil, &e.stats)
	}
	e.transport = e.direct
	if !e.usesDeviceMemory() {
		e.hostStaging()
	}
}

// Ghosts returns the matrix of ghost rows [Ghosts x cols], which EndForward writes and
// BeginBackward sends.
func (e *Exchange) Ghosts(cols int) kernels.Mat { return e.ghosts.Reshape(e.plan.Ghosts, cols) }

// Sums returns the matrix of the plan's sums [Sums x cols]. BeginForward sends it with the
// own rows, and EndBackward writes their gradients into it.
func (e *Exchange) Sums(cols int) kernels.Mat { return e.sums.Reshape(e.plan.Sums, cols) }

// TakeStats returns the statistics and resets them to zero.
func (e *Exchange) TakeStats() Stats {
	s := e.stats
	e.stats = Stats{}
	for _, x := range e.others {
		s.Add(x.TakeStats())
	}
	return s
}

// BeginForward starts to send the rows of x [Own x cols] and of Sums(cols) that other ranks
// have as ghosts. The caller may change both when it returns. Collective.
func (e *Exchange) BeginForward(x kernels.Mat, k Key) error {
	cols := x.Cols
	e.open(false, cols)
	e.checkOwn(x)
	if e.usesDeviceCodec() {
		e.deviceForward(x)
	} else {
		e.direction.out, e.direction.in = e.outgoingRows(x), e.ghostDestination(cols)
	}
	return e.begin(k)
}

// Arrived reports, without waiting, whether all rows of the current exchange have arrived,
// so that End would not wait. Call it from time to time during computation between Begin
// and End, because messages make progress only in such calls.
func (e *Exchange) Arrived() (bool, error) { return e.transport.arrived() }

// Await waits until all rows of the current exchange have arrived.
func (e *Exchange) Await() error { return e.transport.await() }

// EndForward waits for the ghost rows and returns them [Ghosts x cols]. They are valid
// until the next exchange begins. Collective.
func (e *Exchange) EndForward() (kernels.Mat, error) {
	e.checkEnd(forward)
	if err := e.transport.end(e.direction); err != nil {
		return kernels.Mat{}, err
	}
	return e.receivedGhosts(), nil
}

// BeginBackward starts to send the gradients of ghosts, which the caller has written to
// Ghosts(cols), to their owners. Collective.
func (e *Exchange) BeginBackward(cols int, k Key) error {
	e.open(true, cols)
	if e.usesDeviceCodec() {
		e.deviceBackward(cols)
	} else {
		e.direction.out, e.direction.in, e.direction.add = e.ghostGradients(cols), e.gradDestination(cols), !e.ops.Remote()
	}
	return e.begin(k)
}

// begin starts to send in e.direction.
func (e *Exchange) begin(k Key) error {
	k.Backward, k.From = e.direction.backward, e.comm.Rank()
	err := e.transport.begin(e.direction, k)
	if e.observer != nil && err == nil {
		e.key, e.beganAt, e.waitBefore = k, time.Now(), e.stats.Wait
		e.observer.Leaving(k, e.direction.out, e.direction.in.Len)
	}
	return err
}

// EndBackward waits for the gradients of own vertices from other ranks and adds them to own
// [Own x cols], in ascending order of ranks. Sums then has the gradients of sums, until the
// next exchange begins. Collective.
func (e *Exchange) EndBackward(own kernels.Mat) error {
	e.checkEnd(backward)
	e.checkOwn(own)
	if !e.direction.add {
		if err := e.transport.end(e.direction); err != nil {
			return err
		}
		e.addReturned(own)
		return nil
	}
	if e.direction.coded {
		e.ops.Clear(e.direction.deviceIn.More)
		e.direction.deviceIn.X = own
		return e.transport.end(e.direction)
	}
	clear(e.direction.in.More)
	e.direction.in.X = own.Host()
	return e.transport.end(e.direction)
}

// open starts an exchange of rows of cols columns, whose direction has no rows yet.
func (e *Exchange) open(back bool, cols int) {
	if e.state != "" {
		panic("halo: an exchange is under way already")
	}
	if cols < 0 || cols > e.maxCols && e.plan.Ghosts+len(e.plan.SendRows) > 0 {
		panic("halo: rows are wider than the exchange allows")
	}
	e.direction = direction{outStart: e.plan.SendStart, inStart: e.plan.RecvStart, onDevice: e.usesDeviceMemory()}
	if back {
		e.direction.backward, e.direction.outStart, e.direction.inStart = true, e.plan.RecvStart, e.plan.SendStart
	}
	e.state = e.direction.name()
}

func (e *Exchange) checkEnd(state string) {
	if e.state != state {
		panic("halo: End without its Begin")
	}
	e.state = ""
	if e.observer != nil {
		e.observer.Arrived(e.key, time.Since(e.beganAt), e.stats.Wait-e.waitBefore)
	}
}

func (e *Exchange) checkOwn(x kernels.Mat) {
	if x.Rows != e.plan.Own {
		panic("halo: rows of other than own vertices")
	}
}
