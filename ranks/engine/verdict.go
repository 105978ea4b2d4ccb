package engine

import (
	"siafu/internal/signals"
	"siafu/internal/wire"
	"siafu/ranks/checkpoint"
	"siafu/ranks/stopping"
	"siafu/ranks/world"
)

// A run in bounded asynchrony consists of stretches. At the end of a stretch all ranks have
// finished the same epoch, no message of it is in transit, and there is one version of the
// weights. There the run saves, stops, starts another stretch, or continues synchronously
// (--mode switch-to-sync=X).

// Verdict is the decision of rank 0 at the end of a stretch.
type Verdict struct {
	Epoch int // the last epoch of the stretch
	Next  Next
	Save  bool // write a checkpoint
	Stop  bool // the run ends here by request, with a checkpoint
}

// Next is the action after a stretch.
type Next uint8

// Actions after a stretch.
const (
	EndRun       Next = iota
	NextStretch       // another stretch
	SwitchToSync      // the run continues synchronously
)

// BroadcastVerdict broadcasts rank 0's verdict. Collective over the world.
func BroadcastVerdict(w world.Comm, v Verdict) (Verdict, error) {
	var out wire.Writer
	out.Numbers(v.Epoch, int(v.Next), wire.Bit(v.Save), wire.Bit(v.Stop))
	err := w.Bcast(out.B, 0)
	in := wire.Reader{Rest: out.B}
	return Verdict{in.Number(), Next(in.Number()), in.Flag(), in.Flag()}, err
}

// LastEpoch returns the last epoch of a stretch that starts after the given number of trained
// epochs.
func LastEpoch(every checkpoint.Interval, trained, epochs int) int {
	if n := every.Epochs; n > 0 {
		return min(epochs, (trained/n+1)*n)
	}
	return epochs
}

// verdict returns rank 0's verdict on a stretch that ended with these weights after the given
// number of epochs. all is the number of epochs of the run.
func (t *reporting) verdict(epochs, all int, weights []float32) Verdict {
	v := Verdict{Epoch: epochs, Next: NextStretch, Save: true}
	switch {
	case t.ranks == 0:
		return Verdict{}
	case t.stopped == stopping.ByDivergence, !t.history.Sound(epochs+1, weights):
		v.Next, v.Save = EndRun, false
	case t.stopped == stopping.ByTarget, t.stopped == stopping.ByPatience, epochs >= all:
		v.Next, v.Save = EndRun, t.saver.Every() != checkpoint.Interval{}
		if t.stopped == stopping.ByTarget || t.stopped == stopping.ByPatience {
			t.history.StoppedBy = t.stopped
		}
	case t.stopped == stopping.BySwitch:
		v.Next, v.Save = SwitchToSync, false
	case t.anyRequest == signals.Stop:
		v.Stop = true
	}
	return v
}
