package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/kernels/task"
	"siafu/ranks/stopping"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// PrepareTargets derives the training targets from the labels of all ranks. Collective over the graph
// ranks.
func (e *Engine) PrepareTargets() error {
	if e.Task == graph.Links {
		return nil
	}
	sh, o := e.Shard, &objective.Objective{Task: e.Task, Outputs: e.Network.Dims[e.Network.Layers()], Smoothing: e.Config.LabelSmoothing}
	values := sh.Targets
	if values == nil && o.Task == graph.MultiLabel {
		values = oneHot(sh.Labels, o.Outputs)
	}
	if position, reason := graph.BadTarget(o.Task, values, o.Outputs, sh.Labels); reason != "" {
		return fault.New(fault.Data, "train", "", "target %d of vertex %d is %v: %s", position%o.Outputs,
			sh.Own[position/o.Outputs], values[position], reason).
			Then("leave --task out: the dataset's labels define the task")
	}
	if o.Task == graph.MultiClass && o.Smoothing == 0 && !e.Config.Weighs() {
		return nil
	}
	for _, s := range e.Meta.TargetScaling {
		o.Units = append(o.Units, s.Scale)
	}
	e.targets = task.Target{Objective: o, Values: graph.ScaleTargets(values, e.Meta.TargetScaling)}
	truth := e.truth()
	var err error
	if o.Task == graph.Regression {
		err = e.setTargetScale(o, truth)
	} else {
		err = e.setClassWeights(o, truth)
	}
	return err
}

// oneHot returns labels as rows of 0 and 1, or of NaN without a label.
func oneHot(labels []int32, classes int) []float32 {
	values := make([]float32, len(labels)*classes)
	for v, l := range labels {
		if l >= 0 {
			values[v*classes+int(l)] = 1
			continue
		}
		for c := range classes {
			values[v*classes+c] = float32(math.NaN())
		}
	}
	return values
}

// truth returns the ground truth of the own vertices.
func (e *Engine) truth() objective.Truth {
	return objective.Truth{Labels: e.Shard.Labels, Values: e.targets.Values, Split: e.Shard.Split}
}

// targetsOf returns the targets of the own vertices [lo, hi).
func (e *Engine) targetsOf(lo, hi int) task.Target { return targetPart(e.targets, lo, hi) }

// targetPart returns the rows [lo, hi) of a target.
func targetPart(a task.Target, lo, hi int) task.Target {
	if a.Values != nil {
		a.Values = a.Values[lo*a.Objective.Outputs : hi*a.Objective.Outputs]
	}
	if a.RowWeights != nil {
		a.RowWeights = a.RowWeights[lo:hi]
	}
	return a
}

// setClassWeights computes the weights of classes.
func (e *Engine) setClassWeights(o *objective.Objective, truth objective.Truth) error {
	list, power, err := e.Config.Weights(e.Meta)
	if err != nil || list == nil && power == 0 {
		return err
	}
	counts := slices.Concat(o.Count(truth, graph.SplitTrain), o.Count(truth, graph.SplitVal))
	if err := world.SumInt64s(e.Peers, counts); err != nil {
		return err
	}
	o.Weigh(list, power, counts[:o.Outputs], e.Shard.TrainTotal)
	o.WeighValidation(counts[o.Outputs:])
	return nil
}

// setTargetScale computes the spread of a regression's columns.
func (e *Engine) setTargetScale(o *objective.Objective, truth objective.Truth) error {
	sums := o.Sums(truth)
	if err := world.SumFloat64s(e.Peers, sums); err != nil {
		return err
	}
	squares := o.Squares(truth, sums)
	if err := world.SumFloat64s(e.Peers, squares); err != nil {
		return err
	}
	o.Settle(sums, squares)
	return nil
}

// evaluateBest computes the metrics of the best weights in one more pass, which leaves their
// logits on the ranks. Collective over the graph ranks.
func (t *trainer) evaluateBest() error {
	h := t.history
	_, here := t.tensor.(tensor.CPU)
	if !here || !t.engine.evaluates() || t.stopped || h.StoppedBy == stopping.ByDivergence || len(h.Best) == 0 {
		return nil
	}
	defer t.workers.pauseClocks()()
	copy(t.flat, h.Best)
	t.loadWeights()
	wanted := []uint8{graph.SplitTrain, graph.SplitVal, graph.SplitTest}
	t.observe(wanted...)
	if err := t.forward(model.Pass{Epoch: h.Last.Epoch + 1}, false); err != nil {
		return err
	}
	t.routes.discardStats()
	var err error
	t.engine.metrics, err = t.computeMetrics(allMetrics, wanted...)
	return err
}

// Metrics returns the metrics of the best weights by split, on rank 0 after a training. It
// is nil if they were not computed.
func (e *Engine) Metrics() []objective.Metrics { return e.metrics }

// allMetrics requests all metrics from computeMetrics.
const allMetrics = ""

// computeMetrics returns the metrics of the last pass's logits, by split, on rank 0; unwanted
// splits are empty. If one metric is requested, other metrics that need more than counts are
// left out. Collective over the graph ranks.
func (t *trainer) computeMetrics(metric string, wanted ...uint8) (all []objective.Metrics, err error) {
	if t.engine.Task == graph.Links {
		if !t.pairs {
			return nil, nil
		}
		t.pairing.loadPass(t)
		return t.pairing.computeMetrics(metric, wanted)
	}
	var z []float32
	o, truth, counted := t.engine.objective(), t.engine.truth(), t.observed
	t.endObservation()
	if counted == nil {
		z, counted = kernels.Fetch(t.adder, t.logits(), new([]float32)), newOutcomes(o, wanted)
		counted.add(z, truth)
	}
	all = make([]objective.Metrics, graph.SplitTest+1)
	for _, split := range wanted {
		tally := counted.of[split]
		if err := world.SumInt64s(t.engine.Peers, tally.Counts); err != nil {
			return nil, err
		}
		if err := world.SumFloat64s(t.engine.Peers, tally.Sums); err != nil {
			return nil, err
		}
		all[split] = o.Metrics(tally, int(split))
	}
	switch {
	case metric != allMetrics && metric != "roc_auc":
	case o.Task == graph.MultiLabel:
		err = t.addROCAUC(all, wanted, o.Outputs, func(r, c int) (float32, bool) {
			return z[r*o.Outputs+c],
				truth.Values[r*o.Outputs+c] > 0
		}, truth)
	case o.Task == graph.MultiClass && o.Outputs == 2: // the score of the second class
		err = t.addROCAUC(all, wanted, 1, func(r, _ int) (float32, bool) { return z[2*r+1] - z[2*r], truth.Labels[r] == 1 }, truth)
	}
	return all, err
}

// outcomes are the results of logits by split.
type outcomes struct {
	o  *objective.Objective
	mu sync.Mutex
	of map[uint8]objective.Tally
}

func newOutcomes(o *objective.Objective, splits []uint8) *outcomes {
	t := &outcomes{o: o, of: map[uint8]objective.Tally{}}
	for _, split := range splits {
		t.of[split] = o.NewTally()
	}
	return t
}

// add adds rows. It may be called concurrently.
func (t *outcomes) add(logits []float32, truth objective.Truth) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for split, tally := range t.of {
		t.o.Add(tally, logits, truth, split)
	}
}

// objective returns the task of the network.
func (e *Engine) objective() *objective.Objective {
	if o := e.targets.Objective; o != nil {
		return o
	}
	return &objective.Objective{Task: graph.MultiClass, Outputs: e.Network.Dims[e.Network.Layers()]}
}

// observe makes the next passes count the results of their logits by the given splits, for
// computeMetrics, if no matrix has the logits of all vertices.
func (t *trainer) observe(splits ...uint8) {
	if !t.logits().IsNil() {
		return
	}
	t.observed = newOutcomes(t.engine.objective(), splits)
	truth := t.engine.truth()
	for _, i := range t.intervals {
		i.loss.Observe = func(logits kernels.Mat) {
			t.observed.add(kernels.Fetch(i.ops, logits, new([]float32)), truth.Part(i.lo, i.hi))
		}
	}
}

// endObservation ends observe.
func (t *trainer) endObservation() {
	t.observed = nil
	for _, i := range t.intervals {
		i.loss.Observe = nil
	}
}

// addROCAUC adds the areas under ROC curves, which need the scores of all ranks: rank 0
// receives them one label after another. of returns a row's score for a label, and whether the
// row has it.
func (t *trainer) addROCAUC(all []objective.Metrics, wanted []uint8, labels int, of func(row, label int) (float32, bool),
	truth objective.Truth) error {
	var sums [graph.SplitTest + 1]float64
	var defined [graph.SplitTest + 1]int
	var block []byte
	for c := range labels {
		block = block[:0]
		for r, split := range truth.Split {
			if slices.Contains(wanted, split) && truth.Labels[r] >= 0 {
				score, is := of(r, c)
				block = append(block, split, 0)
				if is {
					block[len(block)-1] = 1
				}
				block = binary.LittleEndian.AppendUint32(block, math.Float32bits(score))
			}
		}
		blocks, err := world.Gather(t.engine.Peers, 0, block)
		if err != nil {
			return err
		}
		for split, rows := range decodeScores(blocks) {
			if auc, ok := objective.ROCAUC(rows); ok {
				sums[split] += auc
				defined[split]++
			}
		}
	}
	for split, n := range defined {
		if n > 0 {
			mean := sums[split] / float64(n)
			all[split].ROCAUC = &mean
		}
	}
	return nil
}

// decodeScores returns the rows received from ranks, by split.
func decodeScores(blocks [][]byte) (of [graph.SplitTest + 1][]objective.Scored) {
	const row = 6
	for _, b := range blocks {
		for ; len(b) >= row; b = b[row:] {
			x := math.Float32frombits(binary.LittleEndian.Uint32(b[2:]))
			of[b[0]] = append(of[b[0]], objective.Scored{Score: x, Is: b[1] > 0})
		}
	}
	return of
}
