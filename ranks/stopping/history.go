package stopping

import (
	"cmp"
	"math"
	"slices"

	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
)

// Reasons why a run, or a phase of it, ends.
const (
	GoesOn       = "" // it continues
	ByEpochs     = "epochs"
	ByTarget     = "target-acc"
	ByPatience   = "patience"
	ByDivergence = runfolder.Diverged
	BySwitch     = "switch-to-sync" // bounded asynchrony ends, and the run continues synchronously
)

// Values of Rule.Monitor other than names of metrics. OnAccuracy means the score in the fields
// called acc, which is another metric in some tasks.
const (
	OnAccuracy = "accuracy"
	OnLoss     = "loss"
	OnBoth     = "both"
	OnPenalty  = "penalised"
)

// Rule defines when a run stops early, and which weights are its best.
type Rule struct {
	Patience int     // epochs without a better line until the end; 0: no limit
	Monitor  string  // the quantity that compares lines: OnAccuracy, …, or a metric in ValMetrics
	Target   float64 // accuracy on the validation vertices; 0: none
	Within   float64 // at Target-Within, bounded asynchrony switches to synchronous training; 0: never
	// Penalty returns the penalty on the weights. With OnPenalty it is added to the validation loss.
	Penalty   func(weights []float32) float64
	Validated bool // there are validation vertices; if not, the last weights are the best, and patience has no limit
}

// History applies the rule to the lines of evaluated epochs, in order, and stores the best
// weights. All modes use it. Its decisions depend only on lines and weights, so ranks with the
// same inputs make the same decisions.
//
//	Best                  is nil before the first finite line, then the weights of BestLine
//	BestLine.Epoch        <= Last.Epoch
//	Record.epoch          is the epoch of BestLine, or with OnBoth a later one
//	Divergence            is not nil if and only if StoppedBy is ByDivergence
type History struct {
	Rule
	Best       []float32
	BestLine   runfolder.Epoch
	Last       runfolder.Epoch // the newest finite line
	Record     Record
	StoppedBy  string // GoesOn until the run has ended
	Divergence *Divergence

	params []model.Param // the weight matrices, whose names a divergence mentions
}

// Record has the best value of each metric so far, and the epoch from which patience counts. The
// initial values are so bad that the first line always improves them: R², which may replace the
// accuracy, has no minimum.
type Record struct {
	acc, loss float64
	metric    float64 // the monitored metric, negated if lower is better
	epoch     int
}

var unset = Record{acc: -math.MaxFloat64, loss: math.Inf(1), metric: math.Inf(-1)}

// IsMetric reports whether monitor is a metric of predictions. Evaluations compute such a metric
// only if it is monitored.
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

// Ended reports whether the run has ended.
func (h *History) Ended() bool { return h.StoppedBy != GoesOn }

// Wait restarts patience at an epoch and lets an ended run continue.
func (h *History) Wait(epoch int) { h.StoppedBy, h.Record.epoch = GoesOn, epoch }

func (r *Rule) recordOf(line runfolder.Epoch) Record {
	return Record{*line.ValAcc, lossOf(line), r.metricOf(line), line.Epoch}
}

// metricOf returns the monitored metric of a line, or -∞ if the line does not have it. This happens
// in a resumed run that monitored another metric before.
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

// lossOf returns the validation loss of a line, or +∞ if it is unknown.
func lossOf(line runfolder.Epoch) float64 {
	if line.ValLoss == nil {
		return math.Inf(1)
	}
	return *line.ValLoss
}

// compare reports whether a line restarts patience, and whether its weights are the best.
//
// OnBoth follows the program of Veličković et al. 2018 (execute_cora.py). An accuracy or a loss
// that equals or improves the best one restarts patience. Weights for which both do are the best.
//
// OnPenalty uses the minimised loss, like the programs of Kipf & Welling 2017 and of Shchur et al.
// 2018 (KDDCriterion, on GNNModel._loss). This loss falls even while a network that learns slowly
// still guesses. Its validation loss may have been lower by chance in the first epochs.
func (r *Rule) compare(now, before Record) (restart, best bool) {
	switch {
	case !r.Validated:
		return true, true
	case r.Monitor == OnLoss, r.Monitor == OnPenalty:
		restart = now.loss < before.loss
	case r.Monitor == OnBoth:
		accurate, sure := now.acc >= before.acc, now.loss <= before.loss
		return accurate || sure, accurate && sure
	case IsMetric(r.Monitor):
		restart = now.metric > before.metric
	default:
		restart = now.acc > before.acc
	}
	return restart, restart
}

// Observe evaluates the line of an epoch and its weights. It returns the reason to end the run, or
// "".
func (h *History) Observe(line runfolder.Epoch, weights []float32) (why string) {
	now := h.recordOf(line)
	if h.Monitor == OnPenalty {
		now.loss += h.Penalty(weights)
	}
	restart, best := h.compare(now, h.Record)
	if h.Diverges(&line, weights, best) {
		return ByDivergence
	}
	h.Last = line
	h.Record.acc, h.Record.loss = max(h.Record.acc, now.acc), min(h.Record.loss, now.loss)
	h.Record.metric = max(h.Record.metric, now.metric)
	if restart {
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

// Conclude evaluates the line of the weights after the last epoch. why is the reason for the end,
// or "" if the run has trained all epochs.
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

// Diverges reports whether the line contains NaN or an infinity, and if so ends the run. It also
// checks the weights if checkWeights is set.
func (h *History) Diverges(line *runfolder.Epoch, weights []float32, checkWeights bool) bool {
	if what := describeLoss(line); what != "" {
		h.diverge(line.Epoch, what+", "+describeWeights(h.params, weights))
		return true
	}
	return checkWeights && !h.Sound(line.Epoch, weights)
}

// Sound reports whether all weights at the start of an epoch are finite. If not, it ends the run.
func (h *History) Sound(epoch int, weights []float32) bool {
	if areFinite(weights) {
		return true
	}
	h.diverge(epoch, describeWeights(h.params, weights))
	return false
}

// diverge ends the run, and records the first cause.
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

// Forget discards the best weights, so that the next line is the best.
func (h *History) Forget() { h.Best, h.BestLine, h.Record = nil, runfolder.Epoch{}, unset }

// Saved returns the record in the form of a checkpoint.
func (r Record) Saved() *checkpoint.Record {
	s := &checkpoint.Record{ValAcc: r.acc, Epoch: r.epoch}
	if isFinite(r.loss) {
		s.ValLoss = &r.loss
	}
	return s
}

// recalled returns the record of a checkpoint. Older checkpoints have only the best line, which
// also has the best metric.
func (r *Rule) recalled(s *checkpoint.Record, best runfolder.Epoch) Record {
	if s == nil {
		return r.recordOf(best)
	}
	return Record{s.ValAcc, lossOf(runfolder.Epoch{ValLoss: s.ValLoss}), r.metricOf(best), s.Epoch}
}
