package engine

import (
	"time"

	"siafu/halo"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// reportEpoch reports the epoch. It is a hook.
func (t *trainer) reportEpoch(e *epochState) (leave bool, err error) {
	if err := t.engine.Arena.WriteError(); err != nil {
		return false, err
	}
	line := &e.line
	line.Seconds, line.Codec, line.Refresh = time.Since(e.started).Seconds()-line.EvalSeconds, t.engine.codec.current, t.phase()
	return false, t.report(*line)
}

// report completes an epoch's line with the measurements of all ranks, and passes it to rank
// 0's reporter. Collective over the graph ranks.
func (t *trainer) report(line runfolder.Epoch) error {
	own := newTally()
	own.measure(t.takeStats(), t.tensor, t.workers)
	own.addPredictions(t.steps.takePredictions())
	if t.engine.fetches() {
		own.addDisk(&t.disk)
	}
	own[tallyPeakRSS] = float64(t.peaks.RSS())
	own[tallyPairs] = float64(t.pairing.takeMoved())
	var err error
	if line.Staleness, err = t.stale.summarize(t.comm, line.Epoch); err != nil {
		return err
	}
	all, err := world.GatherValues(t.comm, 0, own)
	if err != nil || t.comm.Rank() != 0 {
		return err
	}
	sum := newTally()
	for _, of := range all {
		sum.merge(of)
	}
	sum.fill(&line)
	t.noteFallback(line.Epoch, sum.predictions())
	return t.reporter.Epoch(line, sum.spent())
}

// takeStats returns the transfers of training since the last call.
func (t *trainer) takeStats() (rows halo.Stats) {
	for _, source := range t.steps.sources() {
		rows.Add(source.TakeStats())
	}
	return rows
}
