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

// evaluate fills in losses and accuracies of the weights at the start of the line's epoch. If
// training is exact and without dropout, the evaluation is the forward pass of training, and ready
// is true. In four cases it is a separate forward pass with separate timing: if training differs; if
// the epoch will not be trained (closing); if a metric of the logits is monitored, which a training
// pass would overwrite; if values are stored by worker, which a later backward pass would not find.
// Collective over the graph ranks.
func (t *trainer) evaluate(line *runfolder.Epoch, closing bool) (ready bool, err error) {
	t.workers.fault.At(inject.Eval, line.Epoch)
	monitors := stopping.IsMetric(t.cfg.Monitor) && t.history.Validated
	start := time.Now()
	ready = !t.net.Drops() && t.routes.training == t.routes.exact && t.steps.isFull() && !monitors && !t.store.Slotted()
	if !ready || closing {
		goOn := t.workers.pauseClocks()
		defer func() {
			goOn()
			now := time.Now()
			t.workers.clocks[0].record(evaluation, start, now)
			line.EvalSeconds = now.Sub(start).Seconds()
			t.routes.discardStats()
		}()
	}
	var own findings
	if t.engine.evaluates() {
		if monitors {
			t.observe(graph.SplitVal)
		}
		if err := t.forward(model.Pass{Epoch: line.Epoch, Train: ready}, true); err != nil {
			return false, err
		}
		own = t.localFindings(t.intervals)
		if monitors {
			if err := t.monitor(&own); err != nil {
				return false, err
			}
		}
	}
	found, err := t.sumFindings(line.Epoch, own, false)
	if err != nil {
		return false, err
	}
	found.fill(line)
	if monitors {
		err = found.fillMonitored(line, t.cfg.Monitor)
	}
	return ready, err
}

// monitor computes the monitored metric from the logits of the last pass, and adds it to the
// findings of rank 0. Collective over the graph ranks.
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

// Positions of requests after the findings in the sums of score: the numbers of ranks that
// request a checkpoint, a stop, another view, and that no state is stored.
const (
	sumSave = findingsSize + iota
	sumStop
	sumReplace
	sumSkip
	scoreSums
)

// score sums the results of the last forward pass over all ranks. Hits and the validation loss
// are 0 unless that pass counted them. After it, all ranks know any rank's request, possibly
// in an epoch that is already trained. Collective over the graph ranks.
func (t *trainer) score(epoch int, trained bool) (findings, error) {
	return t.sumFindings(epoch, t.localFindings(t.intervals), trained)
}

// localFindings returns the results of the last forward pass of intervals on this rank.
func (t *trainer) localFindings(list []*interval) (found findings) {
	for _, i := range list {
		found.add(&i.loss, t.engine.Shard.TrainTotal)
	}
	t.pairing.addFindings(&found)
	return found
}

// sumFindings sums results like score, with the given results of this rank.
func (t *trainer) sumFindings(epoch int, found findings, trained bool) (findings, error) {
	sums := t.sums
	clear(sums)
	copy(sums, found[:])
	t.addRequests(sums, epoch, trained)
	if t.replaceable() {
		if t.views.ViewRequested() {
			sums[sumReplace] = 1
		}
		if t.comm.Rank() == 0 && !t.storage.due(t.views.Share()) {
			sums[sumSkip] = 1
		}
	}
	if err := t.timed(schedule.Loss, epoch, func() error { return world.SumFloat64s(t.comm, sums) }); err != nil {
		return findings{}, err
	}
	t.noteRequests(sums)
	t.viewRequested, t.storage.skips = sums[sumReplace] > 0, sums[sumSkip] > 0
	return findings(sums[:findingsSize]), nil
}

// addRequests adds this rank's requests to the sums of score.
func (t *trainer) addRequests(sums []float64, epoch int, trained bool) {
	switch max(t.saver.Pending(epoch, trained), t.servers.Asked()) {
	case signals.Checkpoint:
		sums[sumSave] = 1
	case signals.Stop:
		sums[sumStop] = 1
	}
}

// noteRequests stores the requests of all ranks.
func (t *trainer) noteRequests(sums []float64) {
	switch {
	case sums[sumStop] > 0:
		t.pendingRequest = signals.Stop
	case sums[sumSave] > 0:
		t.pendingRequest = max(t.pendingRequest, signals.Checkpoint)
	}
}
