package ranks

import (
	"fmt"
	"slices"

	"siafu/graph/fault"
	"siafu/ranks/runfolder"
)

// budget ends a run before it costs more dollars than it may. It is rank 0's; all
// amounts are of the run with its parts before a checkpoint.
//
// An epoch's cost is the difference between what the run has cost after it and after the
// epoch before, and so has its evaluation and checkpoint in it.
type budget struct {
	usd    float64   // 0: without end
	few    int       // epochs of which the dearest counts
	ahead  int       // epochs that are trained behind the one in which a stop is asked for
	began  float64   // what the run had cost before this process's first epoch
	last   float64   // and after its newest one
	epochs []float64 // of the last few
	over   bool      // it has asked for a stop
}

// fewEpochs is how many epochs are taken for those to come, if every one of them is
// evaluated.
const fewEpochs = 8

// forwardShare is how many times what the first way forward has cost a first epoch may
// cost: an evaluation, the same way in training, and the way back for the price of two.
const forwardShare = 4

func newBudget(c *Config) budget {
	b := budget{usd: c.BudgetUSD(), few: max(fewEpochs, c.EvalEvery+c.LocalEpochs+1)}
	if c.Asynchronous() {
		b.ahead = c.MostStaleness() + 1 // none can be farther ahead of rank 0; free, epochs are the server's
	}
	return b
}

// resume takes up the epochs before a checkpoint.
func (b *budget) resume(lines []runfolder.Epoch) {
	for i := 1; i < len(lines); i++ {
		b.add(lines[i].CostUSD - lines[i-1].CostUSD)
	}
}

func (b *budget) add(cost float64) {
	b.epochs = append(b.epochs, cost)
	b.epochs = b.epochs[max(len(b.epochs)-b.few, 0):]
}

// begin takes what the run has cost before its first epoch here, and fails where
// another one might be too dear.
func (b *budget) begin(now float64) error {
	b.began, b.last = now, now
	if b.usd == 0 || now+b.dearest(0) < b.usd {
		return nil
	}
	return fault.New(fault.Config, "train", "", "--budget=%g: the run has cost $%.6f, and another epoch up to $%.6f", b.usd, now, b.dearest(0)).
		Then("give it a larger --budget")
}

// spent takes what the run has cost after an epoch.
func (b *budget) spent(now float64) {
	b.add(now - b.last)
	b.last = now
}

// dearest is what an epoch may cost: the most that one of the last few has, else what is
// guessed.
func (b *budget) dearest(guess float64) float64 {
	if len(b.epochs) == 0 {
		return guess
	}
	return slices.Max(b.epochs)
}

// stops tells whether the run is to end behind the epoch under way, which may be
// trained already: where another one, and as much again for the checkpoint or the last
// evaluation, might cost more than is left.
func (b *budget) stops(now float64, trained bool) bool {
	if b.usd == 0 {
		return false
	}
	guess := now - b.began
	if !trained {
		guess *= forwardShare
	}
	epoch, end := b.dearest(guess), now
	if !trained {
		end = max(now, b.last+epoch)
	}
	b.over = b.over || end+float64(b.ahead+2)*epoch >= b.usd
	return b.over
}

// why is the reason of a stop.
func (b *budget) why(now float64) string {
	return fmt.Sprintf("it has cost $%.6f, and might pass --budget %g with another epoch and what follows it", now, b.usd)
}
