package refresh_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/graph/decodertest"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/halo/refresh"
	"siafu/kernels"
	"siafu/ranks/world"
)

// counted is an outbox that knows how much was posted.
type counted struct {
	comm.Outbox
	bytes, messages int64
	longest         int
}

func (c *counted) Post(b []byte, to, tag int) error {
	c.bytes, c.messages, c.longest = c.bytes+int64(len(b)), c.messages+1, max(c.longest, len(b))
	return c.Outbox.Post(b, to, tag)
}

// hostile is a rank of a world that delivers what it is sent in any order and some
// of it twice, and is slow to put it into its place. It knows from the messages
// themselves what is to be where.
type hostile struct {
	*member
	rng      *rand.Rand
	source   *refresh.Bounded
	accepted map[halo.Slot][]claim // by layer and direction, Epoch 0: not taken yet
	newest   map[halo.Slot][]int   // likewise: the epoch of each row
}

// claim is what a message says.
type claim struct{ first, rows, epoch int }

// intervals are the bounds of a rank's: different ones on every rank.
func (h *hostile) intervals() []int {
	n, cut := h.shard.NumOwn(), 1+h.Rank()
	list := []int{0}
	for k := 1; k <= cut; k++ {
		list = append(list, k*n/(cut+1))
	}
	return append(list, n)
}

// goOn offers an epoch's rows and gradients, of intervals in any order, and takes
// something of what has come between any two.
func (h *hostile) goOn(epoch int) error {
	own, ghosts := h.intervals(), []int{0, h.shard.NumGhosts() / 2, h.shard.NumGhosts()}
	for l := range layers {
		rows := show(h.shard.Own, epoch, l)
		for _, k := range h.rng.Perm(len(own) - 1) {
			if err := h.source.Offer(halo.Slot{Epoch: epoch, Layer: l}, rows, own[k], own[k+1]); err != nil {
				return err
			}
			if err := h.disturb(); err != nil {
				return err
			}
		}
	}
	at := halo.Slot{Epoch: epoch, Layer: 1, Backward: true}
	room := h.source.Room(at)
	copy(room.Host(), show(h.shard.Ghosts, epoch, 1).Host())
	for _, k := range h.rng.Perm(len(ghosts) - 1) {
		if err := h.source.Offer(at, room, ghosts[k], ghosts[k+1]); err != nil {
			return err
		}
	}
	return h.disturb()
}

// disturb accepts what has come, shuffled and some of it twice, takes some of what
// has been accepted, and looks whether all is as it must be.
func (h *hostile) disturb() error {
	var came []world.Message
	for {
		m, ok, err := h.TryRecv(world.Any, tag)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		came = append(came, m)
		if h.rng.IntN(4) == 0 {
			came = append(came, world.Message{Source: m.Source, Tag: m.Tag, Data: slices.Clone(m.Data)})
		}
	}
	h.rng.Shuffle(len(came), func(i, j int) { came[i], came[j] = came[j], came[i] })
	for _, m := range came {
		if err := h.accept(m); err != nil {
			return err
		}
	}
	for at := range h.accepted {
		if err := h.take(at, h.rng.IntN(1+len(h.accepted[at]))); err != nil {
			return err
		}
	}
	return nil
}

func (h *hostile) accept(m world.Message) error {
	number := func(at int) int { return int(binary.LittleEndian.Uint32(m.Data[at:])) }
	c := claim{number(12), number(16), number(8)}
	at, due, err := h.source.Accept(m.Source, m.Data)
	if err != nil || !due || at.Epoch != c.epoch || at.Layer != number(4) {
		return fmt.Errorf("rows of epoch %d are accepted as those of %v, due: %t, %v", c.epoch, at, due, err)
	}
	c.first += int(h.start(at.Backward)[m.Source])
	at.Epoch = 0
	h.accepted[at] = append(h.accepted[at], c)
	return nil
}

// start is where the rows of each rank begin.
func (h *hostile) start(backward bool) []int64 {
	if backward {
		return h.shard.SendStart
	}
	return h.shard.GhostStart
}

// take puts the rows of n messages into their place.
func (h *hostile) take(at halo.Slot, n int) error {
	epochs := h.newest[at]
	if epochs == nil {
		epochs = make([]int, h.start(at.Backward)[ranks])
		h.newest[at] = epochs
	}
	for range n {
		c := h.accepted[at][0]
		h.accepted[at] = h.accepted[at][1:]
		lo, hi, err := h.source.Take(at)
		if err != nil {
			return err
		}
		if news := c.epoch > epochs[c.first]; news != (hi > lo) || news && (lo != c.first || hi != c.first+c.rows) {
			return fmt.Errorf("of %+v, where rows of epoch %d are, the rows %d to %d are taken", c, epochs[c.first], lo, hi)
		}
		for k := range c.rows {
			epochs[c.first+k] = max(epochs[c.first+k], c.epoch)
		}
	}
	return h.check(at, epochs)
}

// check compares what the source says and has with the epochs of rows.
func (h *hostile) check(at halo.Slot, epochs []int) error {
	if here, err := h.source.Arrived(at); here == slices.Contains(epochs, 0) || err != nil {
		return fmt.Errorf("arrived: %t, of epochs %v, %v", here, epochs, err)
	}
	if at.Backward {
		return h.checkGrads(at, epochs)
	}
	view, err := h.source.Want(at)
	if err != nil {
		return err
	}
	said, err := agesOf(view)
	if err != nil || !slices.Equal(said, epochs) {
		return fmt.Errorf("the epochs of rows are %v, want %v: %v", said, epochs, err)
	}
	w := widths[at.Layer]
	for i, epoch := range epochs {
		for k := range w {
			want := float32(0)
			if epoch > 0 {
				want = row(h.shard.Ghosts[i], epoch, at.Layer, k)
			}
			if got := view.Rows.Host()[i*w+k]; got != want {
				return fmt.Errorf("%v: ghost %d of epoch %d has %v, want %v", at, i, epoch, got, want)
			}
		}
	}
	return nil
}

func (h *hostile) checkGrads(at halo.Slot, epochs []int) error {
	n, w := h.shard.NumOwn(), widths[at.Layer]
	want := make([]float32, n*w)
	for i, r := range h.shard.SendRows {
		for k := range w {
			if epochs[i] > 0 {
				want[int(r)*w+k] += row(h.shard.Own[r], epochs[i], at.Layer, k)
			}
		}
	}
	got, own := kernels.HostMat(n, w, make([]float32, n*w)), h.intervals()
	for k := range len(own) - 1 {
		if err := h.source.Add(h.team, at, got, own[k], own[k+1]); err != nil {
			return err
		}
	}
	if !slices.Equal(got.Host(), want) {
		return fmt.Errorf("the gradients are %v, want %v", got.Host(), want)
	}
	return nil
}

// In whatever order messages come and however often, each row is the newest of
// those that were put into their place, and the source says of which epoch it is;
// owners add the newest gradients of each holder. Each row that is offered is sent
// once to each holder, and counted, in messages that are no longer than they may be: of
// odd seeds, short ones.
func TestBoundedUnderHostileDelivery(t *testing.T) {
	data := planted(t)
	for _, name := range []string{"none", "s2", "bf16+zstd"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s seed=%d", name, seed), func(t *testing.T) {
				together(t, data, name, func(m *member) error {
					out := &counted{Outbox: world.NewOutbox(m)}
					most := short * int(seed%2)
					h := &hostile{
						member: m, rng: rand.New(rand.NewPCG(seed, uint64(m.Rank()))), source: m.newest(out, most),
						accepted: map[halo.Slot][]claim{}, newest: map[halo.Slot][]int{},
					}
					err := h.run(out)
					if err == nil && name == "none" && most > 0 && out.longest > most+frames {
						return fmt.Errorf("a message has %d bytes, where %d are the most", out.longest, most)
					}
					return err
				})
			})
		}
	}
}

// short is the length of short messages, beside what stands before their rows.
const (
	short  = 64
	frames = 64
)

func (h *hostile) run(out *counted) error {
	for epoch := 1; epoch <= epochs; epoch++ {
		if err := h.goOn(epoch); err != nil {
			return err
		}
	}
	if err := h.Barrier(); err != nil { // everything has been sent
		return err
	}
	if err := h.disturb(); err != nil {
		return err
	}
	for at := range h.accepted {
		if err := h.take(at, len(h.accepted[at])); err != nil {
			return err
		}
		if slices.ContainsFunc(h.newest[at], func(epoch int) bool { return epoch != epochs }) {
			return fmt.Errorf("%v: the last epochs of rows are %v", at, h.newest[at])
		}
	}
	raw := 4 * epochs * ((widths[0]+widths[1])*len(h.shard.SendRows) + widths[1]*h.shard.NumGhosts())
	if s := h.source.TakeStats(); s.RawBytes != int64(raw) || s.SentBytes != out.bytes || s.Messages != out.messages {
		return fmt.Errorf("%d raw bytes, want %d; %d bytes sent in %d messages, want %d in %d", s.RawBytes, raw, s.SentBytes, s.Messages, out.bytes, out.messages)
	}
	if s := h.source.TakeStats(); s != (halo.Stats{}) {
		return fmt.Errorf("%+v is counted twice", s)
	}
	return h.Barrier()
}

// drawer is an outbox that holds on to what is posted.
type drawer struct{ posted [][]byte }

func (d *drawer) Buffer() ([]byte, error) { return nil, nil }
func (d *drawer) Post(b []byte, _, _ int) error {
	d.posted = append(d.posted, b)
	return nil
}

// mirrored is the plan of the first of two ranks of six vertices each that hold all
// of each other's: a source with it can be given its own messages as the other's.
func mirrored() *halo.Plan {
	return &halo.Plan{
		Parts: 2, Own: 6, Ghosts: 6, SendStart: []int64{0, 0, 6}, SendRows: []uint32{0, 1, 2, 3, 4, 5}, RecvStart: []int64{0, 0, 6},
		OwnIDs: []uint32{0, 1, 2, 3, 4, 5}, GhostIDs: []uint32{6, 7, 8, 9, 10, 11},
	}
}

// single is a source with that plan, staleness 1, and rows after epoch 2.
func single(t testing.TB, out comm.Outbox) (*refresh.Bounded, *kernels.Team) {
	t.Helper()
	none, err := codec.ByName("none")
	if err != nil {
		t.Fatal(err)
	}
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	t.Cleanup(team.Close)
	t.Cleanup(arena.Free)
	o := refresh.BoundedOptions{Shapes: shape(), Plan: mirrored(), Codec: none, Staleness: 1, After: 2, Outbox: out, Tag: tag}
	return refresh.NewBounded(o, team, arena), team
}

// offered is the message with rows lo..hi-1 of layer 0 in an epoch.
func offered(t testing.TB, epoch, lo, hi int) []byte {
	t.Helper()
	d := &drawer{}
	s, _ := single(t, d)
	if err := s.Offer(halo.Slot{Epoch: epoch}, show(mirrored().GhostIDs, epoch, 0), lo, hi); err != nil || len(d.posted) != 1 {
		t.Fatalf("%d messages are posted: %v", len(d.posted), err)
	}
	return d.posted[0]
}

// put accepts and takes a message from rank 1.
func put(s *refresh.Bounded, b []byte) (lo, hi int, err error) {
	at, due, err := s.Accept(1, slices.Clone(b))
	if err != nil || !due {
		return 0, 0, err
	}
	return s.Take(at)
}

// A gather gets no rows from beyond the bound, to either side.
func TestBoundedStaleness(t *testing.T) {
	s, _ := single(t, &drawer{})
	if _, hi, err := put(s, offered(t, 8, 0, 6)); hi != 6 || err != nil {
		t.Fatal(hi, err)
	}
	for epoch := 4; epoch <= 12; epoch++ {
		view, err := s.Want(halo.Slot{Epoch: epoch})
		if within := epoch >= 6 && epoch <= 10; within != (err == nil) || within && !slices.Equal(view.Blocks, []halo.Block{{First: 0, Rows: 6, Epoch: 8}}) {
			t.Errorf("epoch %d: %v, %v", epoch, view.Blocks, err)
		} else if !within && !strings.Contains(err.Error(), fmt.Sprintf("epoch %d would gather rows of rank 1 of epoch 8, which staleness 1", epoch)) {
			t.Error(err)
		}
	}
}

// Rows of epochs that were over before the source began, of another stretch of the
// run, are of no use; damaged ones of them neither.
func TestBoundedBegins(t *testing.T) {
	s, _ := single(t, &drawer{})
	for epoch := 1; epoch <= 2; epoch++ {
		if _, due, err := s.Accept(1, offered(t, epoch, 0, 6)); due || err != nil {
			t.Errorf("epoch %d: due %t, %v", epoch, due, err)
		}
	}
	if here, err := s.Arrived(halo.Slot{Epoch: 3}); here || err != nil {
		t.Error(here, err)
	}
	if _, hi, err := put(s, offered(t, 3, 0, 6)); hi != 6 || err != nil {
		t.Error(hi, err)
	}
}

// A message that is damaged anywhere, or that does not fit those before it, is an
// error of the run, and changes nothing.
func TestBoundedRefusesDamage(t *testing.T) {
	good := offered(t, 3, 2, 4)
	bad := map[string][]byte{}
	for n := range len(good) {
		bad[fmt.Sprintf("%d bytes", n)] = good[:n]
		if n < 8 || n >= 12 { // another epoch is another message
			harmed := slices.Clone(good)
			harmed[n] ^= 0xff
			bad[fmt.Sprintf("byte %d", n)] = harmed
		}
	}
	elsewhere := slices.Clone(good)
	elsewhere[12] = 3
	bad["rows of another place"] = elsewhere
	none, err := codec.ByName("none")
	if err != nil {
		t.Fatal(err)
	}
	empty := append(slices.Clone(good[:16]), 0, 0, 0, 0)
	bad["no rows"] = codec.EncodeBlock(empty, none, codec.Rows{Cols: widths[0]}, 2, codec.Key{}, nil)
	bad["longer"] = append(slices.Clone(good), 0)
	bad["across two blocks"] = offered(t, 5, 1, 3)
	bad["within a block"] = offered(t, 5, 0, 1)
	bad["beyond a block"] = offered(t, 5, 4, 6)
	for name, b := range bad {
		s, _ := single(t, &drawer{})
		for _, rows := range [][2]int{{0, 2}, {5, 6}} {
			if _, _, err := put(s, offered(t, 4, rows[0], rows[1])); err != nil {
				t.Fatal(err)
			}
		}
		before, err := s.Want(halo.Slot{Epoch: 4})
		if err != nil {
			t.Fatal(err)
		}
		blocks := slices.Clone(before.Blocks)
		if _, _, err := put(s, b); fault.KindOf(err) != fault.Runtime {
			t.Errorf("%s: %v", name, err)
		}
		after, err := s.Want(halo.Slot{Epoch: 4})
		if here, _ := s.Arrived(halo.Slot{Epoch: 4}); here || err != nil || !slices.Equal(after.Blocks, blocks) {
			t.Errorf("%s leaves %v, %v", name, after.Blocks, err)
		}
	}
	for _, from := range []int{-1, 0, 2} {
		s, _ := single(t, &drawer{})
		if _, _, err := s.Accept(from, good); fault.KindOf(err) != fault.Runtime {
			t.Errorf("from rank %d, which sends no rows: %v", from, err)
		}
	}
}

// FuzzBounded: whatever comes is rows that fit, or a fault.
func FuzzBounded(f *testing.F) {
	f.Add(offered(f, 3, 0, 6))
	f.Add(offered(f, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := single(t, &drawer{})
		var at halo.Slot
		var due bool
		var err error
		hi := 0
		decodertest.Heap(t, int64(len(b)), func() {
			if at, due, err = s.Accept(1, b); due {
				_, hi, err = s.Take(at)
			}
		})
		if err != nil || at.Backward || hi == 0 {
			return
		}
		if view, err := s.Want(at); err != nil || len(view.Blocks) != 1 || view.Blocks[0].Epoch != at.Epoch {
			t.Errorf("%x leaves %v, %v", b, view.Blocks, err)
		}
	})
}

// recycler is an outbox with one buffer.
type recycler struct{ b []byte }

func (r *recycler) Buffer() ([]byte, error) { return r.b, nil }
func (r *recycler) Post(b []byte, _, _ int) error {
	r.b = b
	return nil
}

// Once every row has come, an epoch allocates nothing.
func TestBoundedAllocatesNothing(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("the race detector makes pools forget what they hold")
	}
	r := &recycler{}
	s, team := single(t, r)
	rows, own, epoch := show(mirrored().OwnIDs, 3, 1), kernels.HostMat(6, 2, make([]float32, 12)), 2
	var failed error
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	pass := func() {
		epoch++
		for _, backward := range []bool{false, true} {
			at := halo.Slot{Epoch: epoch, Layer: 1, Backward: backward}
			x := rows
			if backward {
				x = s.Room(at)
			}
			for lo := 0; lo < 6; lo += 3 {
				note(s.Offer(at, x, lo, lo+3))
				_, _, err := s.Accept(1, r.b)
				note(err)
				_, hi, err := s.Take(at)
				note(err)
				if hi != lo+3 {
					note(fmt.Errorf("%d rows of epoch %d are taken", hi, epoch))
				}
			}
			_, err := s.Want(at)
			note(err)
			note(s.Add(team, halo.Slot{Epoch: epoch, Layer: 1, Backward: true}, own, 0, 6))
		}
	}
	pass()
	if n := testing.AllocsPerRun(20, pass); n != 0 || failed != nil {
		t.Errorf("%v allocations, %v", n, failed)
	}
}
