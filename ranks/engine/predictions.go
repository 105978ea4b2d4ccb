package engine

import (
	"fmt"

	"siafu/halo"
	"siafu/halo/history"
	"siafu/halo/predict"
	"siafu/halo/refresh"
	"siafu/kernels"
	"siafu/ranks/inject"
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// predicted returns a source that predicts the rows of another one, if --predict requests it.
// Layers whose rows have no gradient are not predicted: these rows do not depend on weights. idle is
// memory for the predicted rows (idleGhosts). Where the route's gathers can apply a map to sums of rows, rows
// are not predicted one by one.
func (e *Engine) predicted(source halo.Collective, h halo.HistoryOptions, r *route, idle kernels.Mat) halo.Collective {
	if !e.Config.Predicts() {
		return source
	}
	o := predict.Options{
		Kind: e.Config.Predict, Rows: e.Config.PredictRows, History: e.Config.PredictHistory, Plan: h.Plan,
		Timing: e.Config.Ghosts().Timing(), Team: e.packers, Arena: h.Arena,
		Fitting: func(epoch int) { e.Fault.At(inject.Predict, epoch) },
	}
	o.Shard, o.Seed, o.Sums = e.Shard, e.Config.Seed, rankSums{e.Peers}
	o.Window, o.Every, o.LR = e.Config.PredictWindow, e.Config.PredictEvery, e.Config.PredictLR
	o.Fresh, o.Hold = e.Config.PredictInput != "past", e.Config.PredictHold
	if !idle.Remote() {
		o.Ghosts = idle.Host()
	}
	if t := o.Timing; o.Kind == "transfer" && t.Period == t.Interval && t.Decay == 1 && !idle.Remote() {
		o.Maps = func(layer int) func(kernels.Mat, int) {
			if e.Network.Whole(layer) {
				return nil
			}
			return r.graph.MapGhosts(layer, t.Period > 1)
		}
	}
	for _, l := range h.Shapes {
		if r.graph.Layer(l.Layer).Returns() {
			o.Shapes = append(o.Shapes, l)
		}
	}
	return predict.Wrap(source, o)
}

// predictedBatches returns a source that predicts the rows of a batch's outside vertices, at most the
// given number, or averages them with the rows that the batch computes for them, if --predict requests
// it. The history has the own rows of a batch's last step, of the epoch before.
func (b *batches) predictedBatches(e *Engine, source *history.Batch, outside int, computed func(halo.Slot,
	kernels.Mat) kernels.Mat) halo.Collective {
	share, averages := predict.MomentumShare(e.Config.Predict)
	switch {
	case !e.Config.Predicts():
		return source
	case averages:
		return predict.NewMomentum(source, share, outside, e.historyShapes(), computed, source.Replace, e.Arena)
	}
	p := e.predictedHistory(source, e.Shard.NumOwn()/e.Config.Batches(), outside, source.Stored)
	b.predicted = p
	return p
}

// predictVariates makes the source of steps with sampled neighbours predict the history, if --predict
// requests it. It learns from as many rows as half of a step's training vertices: a step has at least
// as many of the epoch before, except late in an epoch with many samples.
func (b *batches) predictVariates(e *Engine, source *history.Variates, training int) {
	if !e.Config.Predicts() {
		return
	}
	examples := training / e.Config.Batches() / 2
	source.Predict(func(inner halo.Collective) halo.Collective {
		p := e.predictedHistory(inner, examples, e.Shard.NumOwn()+e.Shard.NumGhosts(), source.Stored)
		b.predicted = p
		return p
	}, examples, e.Arena)
}

// predictedHistory returns a source that predicts rows of a history from own rows of a step.
func (e *Engine) predictedHistory(source halo.Collective, own, predicted int, stored func(layer, row int,
	dst []float32) int) *predict.Source {
	return predict.Wrap(source, predict.Options{
		Kind: e.Config.Predict, Rows: e.Config.PredictRows, Shapes: e.historyShapes(), Stored: stored,
		Plan:   &halo.Plan{Own: own, Ghosts: predicted},
		Timing: refresh.Timing{Period: 1, Decay: 1}, Team: e.packers, Arena: e.Arena,
	})
}

// rankSums sums arrays over the graph ranks.
type rankSums struct{ comm world.Comm }

func (s rankSums) Float64s(x []float64) error { return world.SumFloat64s(s.comm, x) }
func (s rankSums) Float32s(x []float32) error { return world.SumFloat32s(s.comm, x) }

// trainPredictor trains a recurrent predictor of ghost rows, if a training is due. It is a hook.
func (t *trainer) trainPredictor(e *epochState) (leave bool, err error) {
	if source, ok := t.routes.training.ghosts.(*predict.Source); ok {
		err = t.timed(schedule.Update, e.line.Epoch, func() error { return source.Train(e.line.Epoch) })
	}
	return false, err
}

// noteFallback prints a line at the first epoch in which layers of any rank cannot predict rows.
// It is called on rank 0 with the counts of all ranks. That predictions are no better than stale
// rows is not a problem of the settings, and has no line.
func (t *trainer) noteFallback(epoch int, c predict.Counts) {
	for reason := predict.FewRows; reason < predict.NotBetter; reason++ {
		if c.Fallbacks[reason] == 0 || t.notedFallback {
			continue
		}
		remedy := ""
		if reason == predict.FewRows {
			remedy = "; raise --predict rows=N, or use fewer --parts"
			if !t.steps.isFull() {
				remedy = "; raise --predict rows=N, or use fewer batches (--batch) or --parts"
			}
		}
		t.reporter.Note(fmt.Sprintf("predict: stale rows are used from epoch %d on in %d predictions of an epoch: %s%s\n", epoch,
			c.Fallbacks[reason], reason, remedy))
		t.notedFallback = true
	}
}
