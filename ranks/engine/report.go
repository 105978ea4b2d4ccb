package engine

import (
	"encoding/json"
	"slices"
	"time"

	"siafu/halo"
	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// reportEpoch is a hook that reports the epoch.
func (t *trainer) reportEpoch(e *epochState) (leave bool, err error) {
	line := &e.line
	line.Seconds, line.Codec, line.Refresh = time.Since(e.started).Seconds()-line.EvalSeconds, t.tuning.name(), t.phase()
	return false, t.report(*line)
}

// report completes an epoch's line with the measurements of all ranks, and passes it to rank
// 0's reporter. Collective over the graph ranks.
func (t *trainer) report(line runfolder.Epoch) error {
	stats := slices.Concat(t.workers.takeSeconds(), tensor.TakeSpent(t.tensor).Numbers())
	var rows halo.Stats
	for _, source := range t.sourcesOfGhosts() {
		rows.Add(source.TakeStats())
	}
	stats = append(stats, float64(rows.RawBytes), float64(rows.SentBytes), float64(t.peaks.RSS()), float64(t.pairing.takeMoved()))
	var err error
	if line.Staleness, err = t.stale.summarize(t.comm, line.Epoch); err != nil {
		return err
	}
	all, err := gatherFloats(t.comm, stats)
	if err != nil || t.comm.Rank() != 0 {
		return err
	}
	line.TaskSeconds = map[string]float64{}
	var spent tensor.Spent
	for _, s := range all {
		for i, kind := range kinds {
			line.TaskSeconds[kind] = max(line.TaskSeconds[kind], s[i])
		}
		line.WaitSeconds = max(line.WaitSeconds, s[len(kinds)])
		spent.Add(tensor.SpentOf(s[len(kinds)+1:]))
		bytes := s[len(kinds)+1+tensor.NumSpent:]
		line.GhostBytesRaw += int64(bytes[0])
		line.GhostBytesSent += int64(bytes[1])
		line.PeakRSSBytes = max(line.PeakRSSBytes, int64(bytes[2]))
		line.PairBytes += int64(bytes[3])
	}
	return t.reporter.Epoch(line, spent)
}

// statsSource counts its transfers to other ranks.
type statsSource interface{ TakeStats() halo.Stats }

// sourcesOfGhosts returns the sources of an epoch. Evaluations have already taken their
// counts.
func (t *trainer) sourcesOfGhosts() (list []statsSource) {
	if t.batches != nil {
		return []statsSource{t.batches.source}
	}
	for _, r := range []*route{t.training, t.exact} {
		if r.ghosts != nil {
			list = append(list, r.ghosts)
		}
	}
	return list
}

// gatherFloats gathers all ranks' x on rank 0. Collective.
func gatherFloats(c world.Comm, x []float64) ([][]float64, error) {
	block, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	blocks, err := world.Gather(c, 0, block)
	if err != nil || c.Rank() != 0 {
		return nil, err
	}
	all := make([][]float64, len(blocks))
	for i, b := range blocks {
		if err := json.Unmarshal(b, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
