package engine

import (
	"slices"
	"time"

	"siafu/internal/fault"
	"siafu/internal/signals"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
	"siafu/ranks/tensor"
)

// Places in a tally, behind the findings of the passes: bytes of rows as
// float32 and as they were sent, and what was spent on invocations. These are added
// up over ranks.
// Then come those of which the greatest counts: the seconds of each kind of task,
// the seconds without a task, and what the rank has been asked for.
const (
	tallyRaw = findingsSize + iota
	tallySent
	tallyStarts     // of intervals
	tallyLateStarts // with weights of an epoch before
	tallyGathers
	tallyOldGathers // that read a row, or a gradient, of an epoch before
	tallySpent
	tallyTasks = tallySpent + tensor.NumSpent
)

// byRequest is why a stretch ends that was asked to save, or to stop.
const byRequest = "asked"

// tallies are what is known of epochs. A rank adds up what its intervals have
// found, and tells rank 0 when all of them have finished the epoch; rank 0 adds
// up the ranks, and reports the epoch when it has heard of every rank.
//
// In bounded asynchrony an epoch's loss and accuracies are found by the passes
// that train: with several versions of the weights, and with dropout where there
// is any.
type tallies struct {
	ownTallies map[int][]float64 // by epoch: this rank's tally
	finished   map[int]int       // by epoch: how many of this rank's intervals have finished it

	ranks           int               // graph ranks, on rank 0
	sums            map[int][]float64 // by epoch that is not reported: the tallies that have come, added up
	receivedTallies map[int]int       // by epoch that is not reported: how many tallies these are, below ranks
	reportedEpoch   int               // the last epoch that is reported
	start           time.Time         // of the epoch that is reported next

	reporter   Reporter
	training   int64 // vertices of all ranks
	history    *stopping.History
	saver      Saver
	anyRequest signals.Request // of any rank, on rank 0
	stopped    string          // why the stretch ends: one of package stopping's reasons, or byRequest

	serverRequest signals.Request // that a server has told of
	// On rank 0: the weights with which the first interval has gone through
	// epochs that are not reported.
	versions map[int][]float32
}

// newTally is one in which nothing has been found.
func newTally() []float64 { return make([]float64, tallyTasks+len(kinds)+2) }

// add adds what the loss of an interval has found.
func (t *tallies) add(i *interval) {
	(*findings)(t.tallyOf(i.epoch)).add(&i.loss, t.training)
}

// saveVersion holds on to the weights of an epoch until it is known how good they
// are.
func (t *tallies) saveVersion(i *interval, weights []float32) {
	if t.ranks > 0 && i.index == 0 {
		t.versions[i.epoch] = slices.Clone(weights)
	}
}

// countStart counts an interval that has got weights for an epoch, and gathers a gather of
// rows from an epoch on.
func (t *tallies) countStart(epoch, version int) { t.count(tallyStarts, epoch, version) }

func (t *tallies) countGather(epoch, oldest int) { t.count(tallyGathers, epoch, oldest) }

func (t *tallies) count(place, epoch, of int) {
	own := t.tallyOf(epoch)
	own[place]++
	if of < epoch {
		own[place+1]++
	}
}

// tallyOf is this rank's tally of an epoch.
func (t *tallies) tallyOf(epoch int) []float64 {
	if t.ownTallies[epoch] == nil {
		t.ownTallies[epoch] = newTally()
	}
	return t.ownTallies[epoch]
}

// complete reports whether nothing more will come that rank 0 waits for.
func (t *tallies) complete(epochs int) bool { return t.ranks == 0 || t.reportedEpoch >= epochs }

// finishInterval notes that an interval has finished an epoch, and tells rank 0 when all
// of this rank's have.
func (f *asyncRank) finishInterval(epoch int) error {
	t := &f.tallies
	if t.finished[epoch]++; t.finished[epoch] < len(f.intervals) {
		return nil
	}
	f.EndEpoch()
	own := t.tallyOf(epoch)
	if f.ghosts != nil {
		s := f.ghosts.TakeStats()
		own[tallyRaw], own[tallySent] = float64(s.RawBytes), float64(s.SentBytes)
	}
	copy(own[tallySpent:], tensor.TakeSpent(f.tensor).Numbers())
	copy(own[tallyTasks:], f.workers.takeSeconds())
	own[len(own)-1] = float64(max(t.saver.Pending(epoch, true), t.serverRequest))
	t.serverRequest = signals.None
	delete(t.ownTallies, epoch)
	delete(t.finished, epoch)
	if f.world.Rank() == 0 {
		return f.takeTally(epoch, own)
	}
	return f.send(0, wireMessage{kind: wireTally, epoch: epoch, numbers: own})
}

// takeTally takes the tally of one rank, on rank 0.
func (f *asyncRank) takeTally(epoch int, numbers []float64) error {
	t := &f.tallies
	if t.ranks == 0 || len(numbers) != len(newTally()) {
		return fault.New(fault.Runtime, "train", "", "malformed metrics message of epoch %d (%d values)", epoch, len(numbers)).
			Then("run the same siafu on all ranks")
	}
	if t.sums[epoch] == nil {
		t.sums[epoch] = make([]float64, len(numbers))
	}
	sum := t.sums[epoch]
	mergeTally(sum, numbers)
	if t.receivedTallies[epoch]++; t.receivedTallies[epoch] < t.ranks {
		return nil
	}
	delete(t.sums, epoch)
	delete(t.receivedTallies, epoch)
	t.reportedEpoch = epoch
	return t.reportEpoch(epoch, sum, f.stop)
}

// mergeTally adds a tally to the sum of others.
func mergeTally(sum, numbers []float64) {
	for i, v := range numbers {
		if i < tallyTasks {
			sum[i] += v
		} else {
			sum[i] = max(sum[i], v)
		}
	}
}

// reportEpoch reports an epoch, and ends the run, or the stretch, where that is due.
// An epoch that has diverged, and those behind it, have no line.
func (t *tallies) reportEpoch(epoch int, sum []float64, stop func() error) error {
	line := t.epochLine(epoch, sum)
	t.anyRequest = max(t.anyRequest, signals.Request(sum[len(sum)-1]))
	before := t.stopped
	t.decideStop(line)
	if before == stopping.GoesOn && t.stopped != stopping.GoesOn {
		if err := stop(); err != nil {
			return err
		}
	}
	if t.stopped == stopping.ByDivergence {
		return nil
	}
	return t.reporter.Epoch(line, tensor.SpentOf(sum[tallySpent:]))
}

// epochLine is that of an epoch that all ranks have finished.
func (t *tallies) epochLine(epoch int, sum []float64) runfolder.Epoch {
	line := runfolder.Epoch{
		Epoch: epoch, Seconds: time.Since(t.start).Seconds(), TaskSeconds: map[string]float64{},
		GhostBytesRaw: int64(sum[tallyRaw]), GhostBytesSent: int64(sum[tallySent]),
	}
	t.start = time.Now()
	if n := sum[tallyStarts]; n > 0 {
		line.Late = &runfolder.Late{Weights: sum[tallyLateStarts] / n, Gathers: sum[tallyOldGathers] / max(sum[tallyGathers], 1)}
	}
	(*findings)(sum).fill(&line)
	for i, name := range kinds {
		line.TaskSeconds[name] = sum[tallyTasks+i]
	}
	line.WaitSeconds = sum[tallyTasks+len(kinds)]
	return line
}

// decideStop settles why the stretch ends, if it does. The first reason counts, but
// that nothing which was found later excuses that the weights are no numbers.
func (t *tallies) decideStop(line runfolder.Epoch) {
	if t.stopped == stopping.ByDivergence {
		return
	}
	why := t.history.Observe(line, t.versions[line.Epoch])
	delete(t.versions, line.Epoch)
	if why == stopping.GoesOn && t.anyRequest > signals.None {
		why = byRequest
	}
	if t.stopped == stopping.GoesOn || why == stopping.ByDivergence {
		t.stopped = why
	}
}

// stop ends the run after the last epoch that any rank can have begun: none can
// be more than s+1 epochs ahead of rank 0, and rank 0's word comes before that
// of its next epoch.
func (f *asyncRank) stop() error {
	last := f.finishedEpochs() + f.setting.Staleness + 1
	if last >= f.Epochs {
		return nil
	}
	f.Epochs = last
	for r := 1; r < f.setting.Graph(); r++ {
		if err := f.send(r, wireMessage{kind: wireStop, epoch: last}); err != nil {
			return err
		}
	}
	return nil
}
