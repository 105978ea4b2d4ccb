package engine

import (
	"time"

	"siafu/graph"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
)

// evaluate fills in losses and accuracies of the weights at the start of the line's epoch. If
// training is exact and without dropout, the evaluation is the forward pass of training, and forwardDone
// is true. In four cases it is a separate forward pass with separate timing: if training differs; if
// the epoch will not be trained (closing); if a metric of the logits is monitored, which a training
// pass would overwrite; if values are stored by worker, which a later backward pass would not find.
// Collective over the graph ranks.
func (t *trainer) evaluate(line *runfolder.Epoch, closing bool) (forwardDone bool, err error) {
	t.workers.fault.At(inject.Eval, line.Epoch)
	monitors := stopping.IsMetric(t.cfg.Monitor) && t.history.Validated
	start := time.Now()
	forwardDone = !t.net.Drops() && t.routes.training == t.routes.exact && t.steps.isFull() && !monitors && !t.store.Slotted()
	if !forwardDone || closing {
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
		if err := t.forward(model.Pass{Epoch: line.Epoch, Train: forwardDone}, true); err != nil {
			return false, err
		}
		own = t.localFindings(t.intervals)
		if monitors {
			if err := t.monitor(&own); err != nil {
				return false, err
			}
		}
	}
	found, asked, err := t.sumResults(line.Epoch, own, t.ownRequests(line.Epoch, false))
	if err != nil {
		return false, err
	}
	t.accept(asked)
	found.fill(line)
	if monitors {
		err = found.fillMonitored(line, t.cfg.Monitor)
	}
	return forwardDone, err
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

// localFindings returns the results of the last forward pass of intervals on this rank.
func (t *trainer) localFindings(list []*interval) (found findings) {
	for _, i := range list {
		found.add(&i.loss, t.engine.Shard.TrainTotal)
	}
	t.pairing.addFindings(&found)
	return found
}
