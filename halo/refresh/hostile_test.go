package refresh_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/halo"
	"siafu/halo/comm"
	"siafu/halo/refresh"
	"siafu/kernels"
	"siafu/ranks/world"
)

// counted is an outbox that counts posted messages.
type counted struct {
	comm.Outbox
	bytes, messages int64
	longest         int
}

func (c *counted) Post(b []byte, to, tag int) error {
	c.bytes, c.messages, c.longest = c.bytes+int64(len(b)), c.messages+1, max(c.longest, len(b))
	return c.Outbox.Post(b, to, tag)
}

// hostile is a rank that accepts messages in any order, some twice, and stores their rows
// late. It computes the expected rows from the messages themselves.
type hostile struct {
	*member
	rng      *rand.Rand
	source   *refresh.Bounded
	accepted map[halo.Slot][]claim // by layer and direction, Epoch 0: not taken yet
	newest   map[halo.Slot][]int   // likewise: the epoch of each row
}

// claim is the header of a message.
type claim struct{ first, rows, epoch int }

// intervals returns the bounds of a rank's intervals, different on every rank.
func (h *hostile) intervals() []int {
	n, cut := h.shard.NumOwn(), 1+h.Rank()
	list := []int{0}
	for k := 1; k <= cut; k++ {
		list = append(list, k*n/(cut+1))
	}
	return append(list, n)
}

// goOn offers an epoch's rows and gradients, intervals in any order. Between two offers it
// takes some received rows.
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
	buffer := h.source.SendBuffer(at)
	copy(buffer.Host(), show(h.shard.Ghosts, epoch, 1).Host())
	for _, k := range h.rng.Perm(len(ghosts) - 1) {
		if err := h.source.Offer(at, buffer, ghosts[k], ghosts[k+1]); err != nil {
			return err
		}
	}
	return h.disturb()
}

// disturb accepts received messages, shuffled and some twice, takes some of them, and checks
// the state.
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

// start returns the first row of each rank.
func (h *hostile) start(backward bool) []int64 {
	if backward {
		return h.shard.SendStart
	}
	return h.shard.GhostStart
}

// take stores the rows of n messages.
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

// check compares the source's rows and epochs with the expected epochs.
func (h *hostile) check(at halo.Slot, epochs []int) error {
	if here, err := h.source.Arrived(at); here == slices.Contains(epochs, 0) || err != nil {
		return fmt.Errorf("arrived: %t, of epochs %v, %v", here, epochs, err)
	}
	if at.Backward {
		return h.checkGrads(at, epochs)
	}
	view, err := h.source.View(at)
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

// For any order and repetition of messages, each row is the newest of the stored ones, and the
// source reports its epoch. Owners add the newest gradients of each holder. Each offered row
// is sent once to each holder, and counted. Messages do not exceed their maximum length, which
// is short for odd seeds.
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
		return fmt.Errorf("%d raw bytes, want %d; %d bytes sent in %d messages, want %d in %d", s.RawBytes, raw, s.SentBytes,
			s.Messages, out.bytes, out.messages)
	}
	if s := h.source.TakeStats(); s != (halo.Stats{}) {
		return fmt.Errorf("%+v is counted twice", s)
	}
	return h.Barrier()
}
