package engine

import (
	"slices"
	"time"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/internal/wire"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
)

// byRequest is the reason of a stretch that ends with a request to save or stop.
const byRequest = "asked"

// tallies are the results of epochs. A rank sums the results of its intervals, and sends the sum
// to rank 0 when all intervals have finished the epoch. Rank 0 sums over ranks, and reports the
// epoch after the tally of the last rank has arrived.
//
// In bounded asynchrony the training passes compute an epoch's loss and accuracies. They use several
// versions of the weights, and dropout if the network has any.
type tallies struct {
	ownTallies epochTallies // of this rank
	finished   map[int]int  // by epoch: number of this rank's intervals that have finished it
	received   receivedTallies
	reporting
}

// receivedTallies are the tallies of all ranks, on rank 0.
type receivedTallies struct {
	sums  epochTallies // of unreported epochs: the sums of received tallies
	count map[int]int  // by unreported epoch: the number of received tallies, below ranks
}

// reporting reports epochs, on rank 0.
type reporting struct {
	ranks         int       // graph ranks, on rank 0
	reportedEpoch int       // the last reported epoch
	start         time.Time // of the next reported epoch

	reporter   Reporter
	training   int64 // vertices of all ranks
	history    *stopping.History
	saver      Saver
	anyRequest signals.Request // of any rank, on rank 0
	stopped    string          // reason for the end of the stretch: of package stopping, or byRequest

	// On rank 0: the weights of the first interval in each unreported epoch.
	versions map[int][]float32
}

// add adds the results of an interval's loss.
func (t *tallies) add(i *interval) {
	t.ownTallies.of(i.epoch).findings().add(&i.loss, t.training)
}

// saveVersion stores the weights of an epoch until their metrics are known.
func (t *tallies) saveVersion(i *interval, weights []float32) {
	if t.ranks > 0 && i.index == 0 {
		t.versions[i.epoch] = slices.Clone(weights)
	}
}

// count counts a start or a gather in an epoch at a position of the epoch's tally. If the input of the
// start or gather is older than the epoch, count also counts at the next position.
func (t *tallies) count(position, epoch, input int) {
	own := t.ownTallies.of(epoch)
	own[position]++
	if input < epoch {
		own[position+1]++
	}
}

// epochTallies are tallies by epoch.
type epochTallies map[int]tally

// of returns the tally of an epoch, which is zero at first.
func (t epochTallies) of(epoch int) tally {
	if _, ok := t[epoch]; !ok {
		t[epoch] = newTally()
	}
	return t[epoch]
}

// complete reports whether all epochs have been reported. Ranks other than 0 report nothing, so
// complete returns true there.
func (t *reporting) complete(epochs int) bool { return t.ranks == 0 || t.reportedEpoch >= epochs }

// finishInterval records that an interval has finished an epoch, and notifies rank 0 after
// this rank's last interval.
func (f *asyncRank) finishInterval(epoch int) error {
	t := &f.tallies
	if t.finished[epoch]++; t.finished[epoch] < len(f.intervals) {
		return nil
	}
	f.EndEpoch()
	own := t.ownTallies.of(epoch)
	var rows halo.Stats
	if f.propagates {
		rows = f.ghosts.TakeStats()
	}
	own.measure(rows, f.tensor, f.workers)
	own.addRequest(max(t.saver.Pending(epoch, true), f.serverRequest))
	f.serverRequest = signals.None
	delete(t.ownTallies, epoch)
	delete(t.finished, epoch)
	if f.world.Rank() == 0 {
		return f.takeTally(epoch, own)
	}
	return f.send(0, tallyMessage(epoch, own))
}

// tallyMessage returns the message with a rank's results of an epoch.
func tallyMessage(epoch int, own tally) wire.Message {
	return wire.Message{Kind: wire.Tally, Numbers: wire.Numbers{epoch}, Body: mapped.Bytes(own)}
}

// takeTally processes the tally of one rank, on rank 0.
func (f *asyncRank) takeTally(epoch int, numbers tally) error {
	t := &f.tallies
	if t.ranks == 0 || len(numbers) != len(newTally()) {
		return wire.Mismatch("train", "malformed metrics message of epoch %d (%d values)", epoch, len(numbers))
	}
	r := &t.received
	sum := r.sums.of(epoch)
	sum.merge(numbers)
	if r.count[epoch]++; r.count[epoch] < t.ranks {
		return nil
	}
	delete(r.sums, epoch)
	delete(r.count, epoch)
	t.reportedEpoch = epoch
	return t.reportEpoch(epoch, sum, f.stop)
}

// reportEpoch reports an epoch, and ends the run or the stretch if necessary. An epoch that has
// diverged, and later epochs, have no line.
func (t *reporting) reportEpoch(epoch int, sum tally, stop func() error) error {
	line := t.epochLine(epoch, sum)
	t.anyRequest = max(t.anyRequest, sum.request())
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
	return t.reporter.Epoch(line, sum.spent())
}

// epochLine returns the line of an epoch that all ranks have finished.
func (t *reporting) epochLine(epoch int, sum tally) runfolder.Epoch {
	line := runfolder.Epoch{Epoch: epoch, Seconds: time.Since(t.start).Seconds()}
	t.start = time.Now()
	sum.findings().fill(&line)
	sum.fill(&line)
	return line
}

// decideStop sets the reason for the end of the stretch, if it ends. The first reason counts, except
// that divergence (weights that are not finite) overrides every other reason.
func (t *reporting) decideStop(line runfolder.Epoch) {
	if t.stopped == stopping.ByDivergence {
		return
	}
	reason := t.history.Observe(line, t.versions[line.Epoch])
	delete(t.versions, line.Epoch)
	if reason == stopping.GoesOn && t.anyRequest > signals.None {
		reason = byRequest
	}
	if t.stopped == stopping.GoesOn || reason == stopping.ByDivergence {
		t.stopped = reason
	}
}

// stop ends the run after the last epoch that any rank can have begun. No rank can be more
// than s+1 epochs ahead of rank 0, and rank 0's stop message precedes the message of its next
// epoch.
func (f *asyncRank) stop() error {
	last := f.finishedEpochs() + f.setting.Staleness + 1
	if last >= f.Epochs {
		return nil
	}
	f.Epochs = last
	for r := 1; r < f.setting.Graph(); r++ {
		if err := f.send(r, wire.Message{Kind: wire.Stop, Numbers: wire.Numbers{last}}); err != nil {
			return err
		}
	}
	return nil
}
