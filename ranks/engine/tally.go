package engine

import (
	"siafu/halo"
	"siafu/halo/predict"
	"siafu/internal/host"
	"siafu/internal/signals"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
)

// tally has the results of an epoch of one rank, or their sum over several ranks.
type tally []float64

// Positions in a tally, after the findings of the passes. These are summed over ranks.
const (
	tallyRaw        = findingsSize + iota // bytes of ghost rows as float32
	tallySent                             // bytes of ghost rows as sent, after encoding
	tallyPairs                            // bytes of rows for scores of pairs
	tallyStarts                           // starts of intervals
	tallyLateStarts                       // starts with weights of an earlier epoch
	tallyGathers
	tallyOldGathers // gathers that read a row, or a gradient, of an earlier epoch
	tallyPredicted  // predictions of a layer and age
	tallyFallbacks  // stale rows in their place, by reason
)

const (
	tallySpent  = tallyFallbacks + int(predict.Fallbacks) // cost of invocations
	tallyMaxima = tallySpent + tensor.NumSpent
)

// At the following positions, merge takes the maximum over ranks.
const (
	tallyRequest = tallyMaxima + iota // request of the rank
	tallyPeakRSS                      // bytes
	tallyPredictSeconds
	tallyPredictBytes
	tallyDiskRead    // bytes from disks, of the rank's process
	tallyDiskWritten // bytes to disks
	tallyTasks       // seconds of each kind of task, of waiting for files, and idle seconds
)

func newTally() tally { return make(tally, tallyTasks+len(kinds)+2) }

// measure adds what a rank has sent, invoked and spent since the last call.
func (t tally) measure(rows halo.Stats, b tensor.Backend, w *workers) {
	t[tallyRaw], t[tallySent] = float64(rows.RawBytes), float64(rows.SentBytes)
	copy(t[tallySpent:], b.TakeSpent().Numbers())
	copy(t[tallyTasks:], w.takeSeconds())
}

// addPredictions adds the predictions of a rank.
func (t tally) addPredictions(c predict.Counts) {
	t[tallyPredictSeconds], t[tallyPredictBytes], t[tallyPredicted] = c.Seconds, float64(c.Bytes), float64(c.Made)
	for reason, n := range c.Fallbacks {
		t[tallyFallbacks+reason] = float64(n)
	}
}

// addDisk adds the bytes that this process has read and written since the last call with the same
// account.
func (t tally) addDisk(account *diskAccount) {
	read, written := host.DiskBytes()
	t[tallyDiskRead], t[tallyDiskWritten] = float64(read-account.read), float64(written-account.written)
	*account = diskAccount{read, written}
}

// diskAccount has the bytes from and to disks that are already reported.
type diskAccount struct{ read, written int64 }

// predictions returns the counts of addPredictions.
func (t tally) predictions() predict.Counts {
	c := predict.Counts{Seconds: t[tallyPredictSeconds], Bytes: int64(t[tallyPredictBytes]), Made: int64(t[tallyPredicted])}
	for reason := range c.Fallbacks {
		c.Fallbacks[reason] = int64(t[tallyFallbacks+reason])
	}
	return c
}

// merge adds the tally of another rank.
func (t tally) merge(o tally) {
	for i, v := range o {
		if i < tallyMaxima {
			t[i] += v
		} else {
			t[i] = max(t[i], v)
		}
	}
}

func (t tally) findings() *findings { return (*findings)(t) }

func (t tally) spent() tensor.Spent { return tensor.SpentOf(t[tallySpent:]) }

func (t tally) request() signals.Request { return signals.Request(t[tallyRequest]) }

func (t tally) addRequest(r signals.Request) { t[tallyRequest] = max(t[tallyRequest], float64(r)) }

// fill fills in the measurements of all ranks.
func (t tally) fill(line *runfolder.Epoch) {
	line.GhostBytesRaw, line.GhostBytesSent, line.PairBytes = int64(t[tallyRaw]), int64(t[tallySent]), int64(t[tallyPairs])
	line.PeakRSSBytes = int64(t[tallyPeakRSS])
	if n := t[tallyStarts]; n > 0 {
		line.Late = &runfolder.Late{Weights: t[tallyLateStarts] / n, Gathers: t[tallyOldGathers] / max(t[tallyGathers], 1)}
	}
	p := t.predictions()
	line.PredictSeconds, line.PredictBytes, line.Predictions = p.Seconds, p.Bytes, p.Made
	for _, n := range p.Fallbacks {
		line.PredictFallbacks += n
	}
	line.TaskSeconds = map[string]float64{}
	for i, kind := range kinds {
		line.TaskSeconds[kind] = t[tallyTasks+i]
	}
	line.FetchWaitSeconds, line.WaitSeconds = t[tallyTasks+len(kinds)], t[tallyTasks+len(kinds)+1]
	line.DiskBytesRead, line.DiskBytesWritten = int64(t[tallyDiskRead]), int64(t[tallyDiskWritten])
}
