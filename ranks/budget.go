package ranks

import (
	"slices"

	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

// budget ends a run before its cost exceeds the limit in dollars. Only rank 0 has one. All
// amounts include the epochs before a checkpoint.
//
// The cost of an epoch is the difference between the cost of the run after it and after the
// previous epoch. It includes the evaluation and the checkpoint of the epoch.
type budget struct {
	usd     float64   // 0: no limit
	few     int       // number of recent epochs; their maximal cost estimates the next epoch
	ahead   int       // epochs trained after the one with the stop request
	began   float64   // cost of the run before this process's first epoch
	last    float64   // cost of the run after the newest epoch
	epochs  []float64 // costs of the last few epochs
	earlier *float64  // cost of the run after the newest epoch before a checkpoint; nil: none
	over    bool      // a stop was requested
}

// fewEpochs is the default number of recent epochs that estimate the next one, if every epoch is
// evaluated.
const fewEpochs = 8

// forwardShare bounds the cost of the first epoch in units of its first forward pass: 1 for the
// evaluation, 1 for the forward pass of training, 2 for the backward pass.
const forwardShare = 4

func newBudget(c *Config) budget {
	b := budget{usd: c.BudgetUSD(), few: max(fewEpochs, c.EvalEvery+c.LocalEpochs+1)}
	if c.Asynchronous() {
		b.ahead = c.MostStaleness() + 1 // the maximal lead of ranks over rank 0, or in mode free over the server's count of epochs
	}
	return b
}

// resume adds the next epoch before a checkpoint. The cost of the first one is unknown: it includes the start.
func (b *budget) resume(e *runfolder.Epoch) {
	if b.earlier != nil {
		b.add(e.CostUSD - *b.earlier)
	}
	cost := e.CostUSD
	b.earlier = &cost
}

func (b *budget) add(cost float64) {
	b.epochs = append(b.epochs, cost)
	b.epochs = b.epochs[max(len(b.epochs)-b.few, 0):]
}

// begin sets the cost of the run before the first epoch of this process. It fails if another epoch
// might exceed the budget.
func (b *budget) begin(now float64) error {
	b.began, b.last = now, now
	if b.usd == 0 || now+b.maxCost(0) < b.usd {
		return nil
	}
	return fault.New(fault.Config, "train", "",
		"--budget=%g: the run has cost $%.6f, and another epoch may cost $%.6f", b.usd, now, b.maxCost(0)).
		Then("raise --budget")
}

// spent sets the cost of the run after an epoch.
func (b *budget) spent(now float64) {
	b.add(now - b.last)
	b.last = now
}

// maxCost returns the maximal cost of the last few epochs, or guess without epochs.
func (b *budget) maxCost(guess float64) float64 {
	if len(b.epochs) == 0 {
		return guess
	}
	return slices.Max(b.epochs)
}

// stops reports whether the run must end after the current epoch, which may already be trained.
// This is the case if another epoch might exceed the budget. The estimate includes the cost of one
// more epoch for the checkpoint or the last evaluation.
func (b *budget) stops(now float64, trained bool) bool {
	if b.usd == 0 {
		return false
	}
	guess := now - b.began
	if !trained {
		guess *= forwardShare
	}
	epoch, end := b.maxCost(guess), now
	if !trained {
		end = max(now, b.last+epoch)
	}
	b.over = b.over || end+float64(b.ahead+2)*epoch >= b.usd
	return b.over
}
