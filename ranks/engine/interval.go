package engine

import (
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// interval is a range of own vertices on which a task works (Dorylus, OSDI'21,
// §4), with what goes from one task to the next.
type interval struct {
	index, lo, hi int // own vertices [lo, hi)

	net    *model.Network // of these vertices
	work   tensor.Work    // Rows is what the last task made
	loss   tensor.Loss
	logits []float32 // of the last pass, until its loss puts their gradient there
	last   []float32 // the input of the last layer, nil where that is X

	// In bounded asynchrony: the interval is in this epoch if it is busy, else it
	// has finished the epoch and has not begun another. asked is the rank of the
	// server that has been asked for the epoch's weights, nobody once they have
	// come; only a busy interval has asked.
	epoch int
	busy  bool
	asked int
}

// nobody is no rank.
const nobody = -1

// part is the interval's rows of a matrix of all own vertices.
func (i *interval) part(x []float32, width int) []float32 { return x[i.lo*width : i.hi*width] }

// at is the interval as graph work sees it in layer l.
func (i *interval) at(l int) graphwork.Interval {
	return graphwork.Interval{Lo: i.lo, Hi: i.hi, Team: i.work.Team, Layer: i.net.Layers[l]}
}

// do runs a tensor task of the interval.
func (i *interval) do(b tensor.Backend, worker *kernels.Team, t schedule.Task, p model.Pass) (bool, error) {
	w := &i.work
	w.Task, w.Pass = t, p
	if t.Layer == len(i.net.Layers)-1 {
		switch t.Stage {
		case schedule.Emit:
			i.last = w.Rows
		case schedule.Loss:
			i.logits = w.Rows
		}
	}
	return b.Begin(worker, w)
}

// newIntervals divides the own vertices of a shard into intervals of equal size
// along the shard's order, in which few edges lead from one interval to another.
// The intervals share the vector weights, unless it is nil: then each has
// weights of its own.
func newIntervals(c config.Config, s model.Spec, sh *shard.Shard, ids []uint32, w *workers, weights []float32, a *mapped.Arena) []*interval {
	n, count := sh.NumOwn(), c.IntervalsOf(s, sh.NumOwn())
	bounds := make([]int, count+1)
	teams := make([]*kernels.Team, count)
	for k := range count {
		bounds[k+1], teams[k] = (k+1)*n/count, w.team()
	}
	grad := mapped.Make[float32](a, n*sh.Classes)
	var list []*interval
	for k, net := range model.Divide(s, model.Input{Features: sh.Features, IDs: sh.Own, LocalIDs: ids}, bounds, teams, weights, a) {
		i := &interval{index: k, lo: bounds[k], hi: bounds[k+1], net: net, asked: nobody}
		i.loss = tensor.Loss{
			Labels: sh.Labels[i.lo:i.hi], Split: sh.Split[i.lo:i.hi], Classes: sh.Classes,
			Scale: float32(1 / float64(max(sh.TrainTotal, 1))), Grad: grad[i.lo*sh.Classes : i.hi*sh.Classes],
		}
		i.work = tensor.Work{Net: net, Team: teams[k], Loss: &i.loss}
		list = append(list, i)
	}
	return list
}
