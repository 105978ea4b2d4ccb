package engine

import (
	"time"

	"siafu/graph"
	"siafu/internal/signals"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
	"siafu/ranks/stopping"
	"siafu/ranks/world"
)

// evaluate fills in losses and accuracies of the weights that the line's epoch
// starts from. Where training drops nothing and is exact, the evaluation is the
// training pass itself with its loss, which are then ready; else, and where the
// epoch is not going to be trained (closing), it is one more forward pass, timed
// apart. So it is where a metric of the logits is monitored, which the gradients of a
// training pass overwrite. Collective over the graph ranks.
func (t *trainer) evaluate(line *runfolder.Epoch, closing bool) (ready bool, err error) {
	t.workers.fault.At(inject.Eval, line.Epoch)
	monitors := stopping.IsMetric(t.cfg.Monitor) && t.history.Validated
	start, ready := time.Now(), !t.net.Drops() && t.training == t.exact && t.batches == nil && !monitors
	if !ready || closing {
		goOn := t.workers.pauseClocks()
		defer func() {
			goOn()
			now := time.Now()
			t.workers.clocks[0].record(evaluation, start, now)
			line.EvalSeconds = now.Sub(start).Seconds()
			if t.exchange != nil {
				t.exchange.TakeStats() // the bytes of evaluations count in no epoch
			}
		}()
	}
	if err := t.forward(model.Pass{Epoch: line.Epoch, Train: ready}, true); err != nil {
		return false, err
	}
	own := t.localFindings(t.intervals)
	if monitors {
		if err := t.monitor(&own); err != nil {
			return false, err
		}
	}
	found, err := t.sumFindings(own, false)
	if err != nil {
		return false, err
	}
	found.fill(line)
	if monitors {
		err = found.fillMonitored(line, t.cfg.Monitor)
	}
	return ready, err
}

// monitor computes the metric that is monitored, from the logits of the last pass, and
// adds it to the findings of rank 0. Collective over the graph ranks.
func (t *trainer) monitor(own *findings) error {
	metrics, err := t.computeMetrics(t.cfg.Monitor, graph.SplitVal)
	if err != nil || t.comm.Rank() != 0 {
		return err
	}
	if value := metrics[graph.SplitVal].Value(t.cfg.Monitor); value != nil {
		own[monitored], own[monitoring] = *value, 1
	}
	return nil
}

// Places of what ranks ask for, behind the findings in the sums of score: how
// many ask for a checkpoint, how many for an end, and how many for another view.
const (
	sumSave = findingsSize + iota
	sumStop
	sumReplace
	scoreSums
)

// score sums what the last forward pass has found over all ranks; hits and the
// validation loss are 0 unless that counted them. What any rank was asked for, in an
// epoch that may be trained already, is then known to all. Collective over the graph ranks.
func (t *trainer) score(trained bool) (findings, error) {
	return t.sumFindings(t.localFindings(t.intervals), trained)
}

// localFindings is what the last forward pass of intervals has found on this rank.
func (t *trainer) localFindings(list []*interval) (found findings) {
	for _, i := range list {
		found.add(&i.loss, t.shard.TrainTotal)
	}
	t.pairing.addFindings(&found)
	return found
}

// sumFindings is score of what this rank has found.
func (t *trainer) sumFindings(found findings, trained bool) (findings, error) {
	sums := t.sums
	clear(sums)
	copy(sums, found[:])
	t.addRequests(sums, trained)
	t.addViewRequest(sums)
	if err := t.timed(schedule.Loss, t.pass.Epoch, func() error { return world.SumFloat64s(t.comm, sums) }); err != nil {
		return findings{}, err
	}
	t.noteRequests(sums)
	t.viewRequested = sums[sumReplace] > 0
	return findings(sums[:findingsSize]), nil
}

// addRequests adds what this rank was asked for to the sums of score.
func (t *trainer) addRequests(sums []float64, trained bool) {
	if t.saver == nil {
		return
	}
	switch max(t.saver.Pending(t.pass.Epoch, trained), t.source.Asked()) {
	case signals.Checkpoint:
		sums[sumSave] = 1
	case signals.Stop:
		sums[sumStop] = 1
	}
}

// noteRequests notes what any rank was asked for.
func (t *trainer) noteRequests(sums []float64) {
	switch {
	case t.saver == nil:
	case sums[sumStop] > 0:
		t.pendingRequest = signals.Stop
	case sums[sumSave] > 0:
		t.pendingRequest = max(t.pendingRequest, signals.Checkpoint)
	}
}
