package ranks

import (
	"cmp"
	"math"
	"slices"

	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
)

// Why a run, or a stretch of it, comes to an end.
const (
	goesOn       = ""
	byEpochs     = "epochs"
	byTarget     = "target-acc"
	byPatience   = "patience"
	byDivergence = runfolder.Diverged
	switched     = "switch-to-sync" // the run goes on in step
	asked        = "asked"          // to save, or to stop
)

// What patience is with.
const (
	onAccuracy = "accuracy"
	onLoss     = "loss"
	onBoth     = "both"
)

// stopping is when a run stops by itself, and which weights are its best.
type stopping struct {
	patience   int    // epochs, 0: without end
	patienceOn string // accuracy, loss or both
	target     float64
	within     float64 // of the target, from where the run is to go on in step
	judged     bool    // there are validation vertices; else the last weights are the best, and patience has no end
}

// history applies the rule to the lines of evaluated epochs, in their order,
// and keeps the best weights. It is the same for all modes, and knows of
// nothing but lines and weights: ranks that observe the same decide the same.
//
//	best is nil        before the first line with numbers
//	record.epoch       is that of bestLine, or with both a later one
//	trouble is not nil if and only if stoppedBy is byDivergence
type history struct {
	stopping
	params    []model.Param
	best      []float32
	bestLine  runfolder.Epoch
	last      runfolder.Epoch // the newest with numbers
	record    record
	stoppedBy string
	trouble   *divergence
}

// record is the best of each measure so far, and the epoch from which patience
// counts. Before the first line every line betters it.
type record struct {
	acc, loss float64
	epoch     int
}

var unset = record{acc: -1, loss: math.Inf(1)}

// recordOf is that of a single line.
func recordOf(line runfolder.Epoch) record {
	return record{*line.ValAcc, lossOf(line), line.Epoch}
}

// lossOf is the validation loss of a line, infinite where it is not known.
func lossOf(line runfolder.Epoch) float64 {
	if line.ValLoss == nil {
		return math.Inf(1)
	}
	return *line.ValLoss
}

// compare tells whether patience begins anew with a line, and whether its
// weights are the best. With both it is as in the program of Veličković et al.
// 2018 (execute_cora.py): an accuracy as good as ever or a loss as low as ever
// begins anew, and the weights that have the two at once are the best.
func (s *stopping) compare(now, before record) (anew, best bool) {
	switch {
	case !s.judged:
		return true, true
	case s.patienceOn == onLoss:
		anew = now.loss < before.loss
	case s.patienceOn == onBoth:
		accurate, sure := now.acc >= before.acc, now.loss <= before.loss
		return accurate || sure, accurate && sure
	default:
		anew = now.acc > before.acc
	}
	return anew, anew
}

// observe takes the line of an evaluated epoch and the weights that it speaks
// of, and tells why the run should end, if it should.
func (h *history) observe(line runfolder.Epoch, weights []float32) (why string) {
	now := recordOf(line)
	anew, best := h.compare(now, h.record)
	if h.diverges(&line, weights, best) {
		return byDivergence
	}
	h.last = line
	h.record.acc, h.record.loss = max(h.record.acc, now.acc), min(h.record.loss, now.loss)
	if anew {
		h.record.epoch = line.Epoch
	}
	if best {
		h.bestLine, h.best = line, append(h.best[:0], weights...)
	}
	switch {
	case h.target > 0 && now.acc >= h.target:
		return byTarget
	case h.within > 0 && now.acc >= h.target-h.within:
		return switched
	case h.patience > 0 && line.Epoch-h.record.epoch >= h.patience:
		return byPatience
	}
	return goesOn
}

// conclude takes the line of the weights after the last epoch. why the run has
// ended is said already, or nothing but its epochs have.
func (h *history) conclude(line runfolder.Epoch, weights []float32, why string) {
	found := h.observe(line, weights)
	if found == byDivergence || !h.sound(line.Epoch, weights) {
		return
	}
	if found == byTarget {
		why = cmp.Or(why, found)
	}
	h.stoppedBy = cmp.Or(why, byEpochs)
}

// diverges tells whether a line holds what is no number, or its weights do,
// which are looked at where that is asked for. The run then ends.
func (h *history) diverges(line *runfolder.Epoch, weights []float32, look bool) bool {
	if what := absurd(line); what != "" {
		h.diverge(line.Epoch, what+", "+suspect(h.params, weights))
		return true
	}
	return look && !h.sound(line.Epoch, weights)
}

// sound tells whether the weights that an epoch starts from are numbers; if not,
// the run ends.
func (h *history) sound(epoch int, weights []float32) bool {
	if numbers(weights) {
		return true
	}
	h.diverge(epoch, suspect(h.params, weights))
	return false
}

// diverge ends the run. The first cause counts.
func (h *history) diverge(epoch int, found string) {
	if h.trouble == nil {
		h.trouble = &divergence{epoch, found}
	}
	h.stoppedBy = byDivergence
}

// trained is the number of epochs of a run that has ended.
func (h *history) trained() int {
	if h.trouble != nil {
		return h.trouble.epoch - 1
	}
	return h.last.Epoch - 1
}

// forget lets the next line be the best.
func (h *history) forget() { h.best, h.bestLine, h.record = nil, runfolder.Epoch{}, unset }

// history is what the run knows of the epochs before.
func (r *run) history() *history {
	c := r.cfg
	h := &history{
		stopping: stopping{patience: c.Patience, patienceOn: c.PatienceOn, target: c.TargetAcc, judged: r.meta.Val > 0},
		params:   r.net.Params(), record: unset,
	}
	if r.asynchronous() {
		h.within = c.SwitchToSync
	}
	if r.from.best != nil {
		h.best, h.bestLine, h.last = slices.Clone(r.from.best), r.from.bestLine, r.from.last
		h.record = recalled(r.from.record, h.bestLine)
	}
	return h
}

// saved is the record as a checkpoint has it.
func (r record) saved() *checkpoint.Record {
	s := &checkpoint.Record{ValAcc: r.acc, Epoch: r.epoch}
	if number(r.loss) {
		s.ValLoss = &r.loss
	}
	return s
}

// recalled is saved backwards. A checkpoint without a record is older than
// those, and has the best line only.
func recalled(s *checkpoint.Record, best runfolder.Epoch) record {
	if s == nil {
		return recordOf(best)
	}
	return recordOf(runfolder.Epoch{Epoch: s.Epoch, ValAcc: &s.ValAcc, ValLoss: s.ValLoss})
}
