package engine

import (
	"cmp"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/task"
	"siafu/ranks/runfolder"
)

// splits are the splits with a counted accuracy.
var splits = [...]int{graph.SplitTrain, graph.SplitVal, graph.SplitTest}

// Positions in findings.
const (
	trainLoss    = 0 // mean loss over the training vertices of all ranks; a rank has its part of the mean
	valLoss      = 1 // summed loss of validation vertices
	hits         = 2 // correct predictions, by split
	totals       = hits + len(splits)
	seenTraining = totals + len(splits) // training vertices
	seenVal      = seenTraining + 1     // validation vertices
	monitored    = seenVal + 1          // the metric of --monitor, from the one rank that computes it
	monitoring   = monitored + 1        // ranks that computed it: 1, or 0 if it is undefined
	findingsSize = monitoring + 1
)

// findings are the results of passes, as sums. A rank adds up the findings of its intervals;
// the world adds up the findings of its ranks, in the order of ranks.
type findings [findingsSize]float64

// add adds the results of an interval's loss; training is the number of training vertices of
// all ranks.
func (f *findings) add(l *task.Loss, training int64) {
	f[trainLoss] += l.Sum / float64(max(training, 1))
	if !l.Count {
		return
	}
	rows, valWeight := &l.Total, 1.0
	if o := l.Objective; o != nil {
		rows, valWeight = &l.Rows, cmp.Or(o.ValWeight, 1)
	}
	f[valLoss] += l.ValSum / valWeight
	f[seenTraining] += float64(rows[graph.SplitTrain])
	f[seenVal] += float64(rows[graph.SplitVal])
	for k, split := range splits {
		f[hits+k] += float64(l.Correct[split]) + l.Part[split]
		f[totals+k] += float64(l.Total[split])
	}
}

// accuracy returns the score of a split, 0 if it is empty.
func (f *findings) accuracy(split int) float64 { return f[hits+split] / max(f[totals+split], 1) }

// fill fills in the results of an evaluation.
func (f *findings) fill(line *runfolder.Epoch) {
	train, val, test := f.accuracy(0), f.accuracy(1), f.accuracy(2)
	line.Loss, line.TrainAcc, line.ValAcc, line.TestAcc = f[trainLoss], &train, &val, &test
	if n := f[seenVal]; n > 0 {
		mean := f[valLoss] / n
		line.ValLoss = &mean
	}
}

// fillMonitored fills in the monitored metric. It fails if the metric is undefined on the
// validation vertices.
func (f *findings) fillMonitored(line *runfolder.Epoch, metric string) error {
	if f[monitoring] == 0 {
		return fault.New(fault.Data, "train", "", "--monitor=%s: the metric is undefined on the validation vertices", metric).
			Then("choose another --monitor, or import a split with validation vertices of several classes")
	}
	line.ValMetrics = map[string]float64{metric: f[monitored]}
	return nil
}
