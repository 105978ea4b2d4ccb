package protocol

import (
	"slices"

	"siafu/internal/wire"
)

// Progress tracks the finished epochs of all graph ranks: "a fast-moving vertex interval is
// allowed to be at most S epochs away from the slowest-moving interval" (Dorylus, OSDI'21,
// §5.2).
type Progress struct {
	setting  Setting
	rank     int
	own      []int // by interval of this rank: number of finished epochs
	finished []int // by graph rank: number of epochs that all its intervals have finished
	slowest  int   // the minimum of finished
	out      []Message
}

// NewProgress makes the view of a graph rank.
func NewProgress(c Setting, rank int) *Progress {
	c.check()
	if rank < 0 || rank >= c.Graph() {
		panic("protocol: no such graph rank")
	}
	return &Progress{
		setting: c, rank: rank, slowest: c.Trained,
		own:      slices.Repeat([]int{c.Trained}, c.Intervals[rank]),
		finished: slices.Repeat([]int{c.Trained}, c.Graph()),
	}
}

// MayStart reports whether an interval that has finished the previous epoch may start this one: every
// interval of every rank has finished epoch-1-s.
func (p *Progress) MayStart(epoch int) bool { return p.slowest >= epoch-1-p.setting.Staleness }

// Slowest returns the number of epochs that every interval of every rank is known to have
// finished.
func (p *Progress) Slowest() int { return p.slowest }

// Finish records that an own interval has finished its next epoch. When the slowest
// interval has, it returns messages to all other ranks. They are valid until the next
// Finish.
func (p *Progress) Finish(interval, epoch int) []Message {
	if epoch != p.own[interval]+1 {
		panic("protocol: an interval has skipped an epoch")
	}
	p.out = p.out[:0]
	p.own[interval] = epoch
	if slices.Min(p.own) == p.finished[p.rank] {
		return nil
	}
	p.advanceRank(p.rank)
	for r := range p.finished {
		if r != p.rank {
			p.out = append(p.out, Message{Type: wire.Finished, From: p.rank, To: r, Epoch: p.finished[p.rank]})
		}
	}
	return p.out
}

// Step processes another rank's Finished. MayStart then reports which epochs may start.
func (p *Progress) Step(m Message) error {
	if m.Type != wire.Finished || m.From < 0 || m.From >= len(p.finished) || m.From == p.rank {
		return broken("progress", m, "it is not the progress of another graph rank")
	}
	if m.Epoch != p.finished[m.From]+1 {
		return broken("progress", m, "the last epoch that the rank finished is %d", p.finished[m.From])
	}
	p.advanceRank(m.From)
	return nil
}

// advanceRank counts one more epoch of a rank.
func (p *Progress) advanceRank(rank int) {
	p.finished[rank]++
	p.slowest = slices.Min(p.finished)
}

// Behind returns the other ranks that are known to have finished fewer epochs than this rank,
// that is, the ranks that it would wait for.
func (p *Progress) Behind() []int {
	var ranks []int
	for r, finished := range p.finished {
		if finished < p.finished[p.rank] {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
