package stopping

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
	GoesOn       = "" // it does not
	ByEpochs     = "epochs"
	ByTarget     = "target-acc"
	ByPatience   = "patience"
	ByDivergence = runfolder.Diverged
	BySwitch     = "switch-to-sync" // bounded asynchrony ends, and the run continues synchronously
)

// Values of Rule.Monitor beside names of metrics. OnAccuracy stands for the score that the
// lines call acc, which other tasks have in its place.
const (
	OnAccuracy = "accuracy"
	OnLoss     = "loss"
	OnBoth     = "both"
	OnPenalty  = "penalised"
)

// Rule defines when a run stops early, and which weights are its best.
type Rule struct {
	Patience int     // epochs without a better line, 0: without end
	Monitor  string  // what makes a line better: OnAccuracy, …, or a metric of its ValMetrics
	Target   float64 // accuracy on the validation vertices, 0: none
	Within   float64 // so far below Target a run in bounded asynchrony continues synchronously, 0: never
	// Penalty is that on the weights, which with OnPenalty is added to the validation loss.
	Penalty   func(weights []float32) float64
	Validated bool // there are validation vertices; else the last weights are the best, and patience has no end
}

// History applies the rule to the lines of evaluated epochs, in their order,
// and keeps the best weights. It is the same for all modes, and knows of
// nothing but lines and weights: ranks that observe the same decide the same.
//
//	Best is nil           before the first line with numbers; else the weights of BestLine
//	BestLine.Epoch        <= Last.Epoch
//	Record.epoch          is that of BestLine, or with OnBoth a later one
//	Divergence is not nil if and only if StoppedBy is ByDivergence
type History struct {
	Rule
	Best       []float32
	BestLine   runfolder.Epoch
	Last       runfolder.Epoch // the newest with numbers
	Record     Record
	StoppedBy  string // GoesOn until the run has ended
	Divergence *Divergence

	params []model.Param // of the weights, whose names a divergence tells
}

// Record has the best value of each metric so far, and the epoch from which patience
// counts. The first line always improves it: R², which may replace the accuracy, has no
// minimum.
type Record struct {
	acc, loss float64
	metric    float64 // that is monitored, negative where lower is better
	epoch     int
}

var unset = Record{acc: -math.MaxFloat64, loss: math.Inf(1), metric: math.Inf(-1)}

// IsMetric reports whether the monitored value is a metric of predictions, which
// evaluations compute only in this case.
func IsMetric(monitor string) bool {
	return !slices.Contains([]string{"", OnAccuracy, OnLoss, OnBoth, OnPenalty}, monitor)
}

// New returns the history of a network's weights before its first line.
func New(rule Rule, params []model.Param) *History {
	return &History{Rule: rule, Record: unset, params: params}
}

// Resume restores a history from a checkpoint. Old checkpoints have no record, only the
// best line.
func (h *History) Resume(best []float32, bestLine, last runfolder.Epoch, record *checkpoint.Record) {
	h.Best, h.BestLine, h.Last = best, bestLine, last
	h.Record = h.recalled(record, bestLine)
}

// Ended reports whether the run has come to its end.
func (h *History) Ended() bool { return h.StoppedBy != GoesOn }

// Wait has patience begin again with an epoch, and the run continue that it would have ended.
func (h *History) Wait(epoch int) { h.StoppedBy, h.Record.epoch = GoesOn, epoch }

// recordOf is that of a single line.
func (r *Rule) recordOf(line runfolder.Epoch) Record {
	return Record{*line.ValAcc, lossOf(line), r.metricOf(line), line.Epoch}
}

// metricOf returns the monitored metric of a line; below all others where the line does not have
// it, as one of a run that monitored something else before it was resumed.
func (r *Rule) metricOf(line runfolder.Epoch) float64 {
	value, ok := line.ValMetrics[r.Monitor]
	switch {
	case !ok:
		return math.Inf(-1)
	case r.Monitor == "mse", r.Monitor == "mae":
		return -value
	}
	return value
}

// lossOf returns the validation loss of a line, infinite where it is not known.
func lossOf(line runfolder.Epoch) float64 {
	if line.ValLoss == nil {
		return math.Inf(1)
	}
	return *line.ValLoss
}

// compare reports whether patience begins again with a line, and whether its
// weights are the best. With both it is as in the program of Veličković et al.
// 2018 (execute_cora.py): an accuracy as good as ever or a loss as low as ever
// begins again, and the weights that have the two at once are the best. With OnPenalty the loss
// is the one that is minimised, as in the programs of Kipf & Welling 2017 and of Shchur et al.
// 2018 (KDDCriterion, on GNNModel._loss): it falls while a network that begins slowly still
// guesses, whose validation loss may have been lower by chance in its first epochs.
func (r *Rule) compare(now, before Record) (anew, best bool) {
	switch {
	case !r.Validated:
		return true, true
	case r.Monitor == OnLoss, r.Monitor == OnPenalty:
		anew = now.loss < before.loss
	case r.Monitor == OnBoth:
		accurate, sure := now.acc >= before.acc, now.loss <= before.loss
		return accurate || sure, accurate && sure
	case IsMetric(r.Monitor):
		anew = now.metric > before.metric
	default:
		anew = now.acc > before.acc
	}
	return anew, anew
}

// Observe takes the line of an evaluated epoch and its weights. It returns the reason to
// end the run, or "".
func (h *History) Observe(line runfolder.Epoch, weights []float32) (why string) {
	now := h.recordOf(line)
	if h.Monitor == OnPenalty {
		now.loss += h.Penalty(weights)
	}
	anew, best := h.compare(now, h.Record)
	if h.Diverges(&line, weights, best) {
		return ByDivergence
	}
	h.Last = line
	h.Record.acc, h.Record.loss = max(h.Record.acc, now.acc), min(h.Record.loss, now.loss)
	h.Record.metric = max(h.Record.metric, now.metric)
	if anew {
		h.Record.epoch = line.Epoch
	}
	if best {
		h.BestLine, h.Best = line, append(h.Best[:0], weights...)
	}
	switch {
	case h.Target > 0 && now.acc >= h.Target:
		return ByTarget
	case h.Within > 0 && now.acc >= h.Target-h.Within:
		return BySwitch
	case h.Patience > 0 && line.Epoch-h.Record.epoch >= h.Patience:
		return ByPatience
	}
	return GoesOn
}

// Conclude takes the line of the weights after the last epoch. why the run has
// ended is said already, or nothing but its epochs have.
func (h *History) Conclude(line runfolder.Epoch, weights []float32, why string) {
	found := h.Observe(line, weights)
	if found == ByDivergence || !h.Sound(line.Epoch, weights) {
		return
	}
	if found == ByTarget {
		why = cmp.Or(why, found)
	}
	h.StoppedBy = cmp.Or(why, ByEpochs)
}

// Diverges reports whether a line, or with look also the weights, contains NaN or an
// infinity. The run then ends.
func (h *History) Diverges(line *runfolder.Epoch, weights []float32, look bool) bool {
	if what := absurd(line); what != "" {
		h.diverge(line.Epoch, what+", "+suspect(h.params, weights))
		return true
	}
	return look && !h.Sound(line.Epoch, weights)
}

// Sound reports whether the weights that an epoch starts from are numbers; if not,
// the run ends.
func (h *History) Sound(epoch int, weights []float32) bool {
	if numbers(weights) {
		return true
	}
	h.diverge(epoch, suspect(h.params, weights))
	return false
}

// diverge ends the run. The first cause counts.
func (h *History) diverge(epoch int, found string) {
	if h.Divergence == nil {
		h.Divergence = &Divergence{epoch, found}
	}
	h.StoppedBy = ByDivergence
}

// Trained returns the number of epochs of a run that has ended.
func (h *History) Trained() int {
	if h.Divergence != nil {
		return h.Divergence.Epoch - 1
	}
	return h.Last.Epoch - 1
}

// Forget lets the next line be the best.
func (h *History) Forget() { h.Best, h.BestLine, h.Record = nil, runfolder.Epoch{}, unset }

// Saved returns the record as a checkpoint has it.
func (r Record) Saved() *checkpoint.Record {
	s := &checkpoint.Record{ValAcc: r.acc, Epoch: r.epoch}
	if number(r.loss) {
		s.ValLoss = &r.loss
	}
	return s
}

// recalled returns the record that was saved. A checkpoint without one is older than records, and
// has the best line only. The best line also has the best metric.
func (r *Rule) recalled(s *checkpoint.Record, best runfolder.Epoch) Record {
	if s == nil {
		return r.recordOf(best)
	}
	return Record{s.ValAcc, lossOf(runfolder.Epoch{ValLoss: s.ValLoss}), r.metricOf(best), s.Epoch}
}
