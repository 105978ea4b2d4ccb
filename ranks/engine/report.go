package engine

import (
	"encoding/json"

	"siafu/ranks/runfolder"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// report completes an epoch's line with what all ranks did in it, and hands it
// to rank 0's reporter. Collective over the graph ranks.
func (t *trainer) report(line runfolder.Epoch) error {
	stats := append(t.workers.take(), float64(t.invoked.take()))
	if t.training.ghosts != nil {
		s := t.training.ghosts.TakeStats()
		stats = append(stats, float64(s.RawBytes), float64(s.SentBytes))
	}
	all, err := gatherFloats(t.comm, stats)
	if err != nil || t.comm.Rank() != 0 {
		return err
	}
	line.TaskSeconds = map[string]float64{}
	for _, s := range all {
		for i, kind := range kinds {
			line.TaskSeconds[kind] = max(line.TaskSeconds[kind], s[i])
		}
		line.WaitSeconds = max(line.WaitSeconds, s[len(kinds)])
		line.LambdaInvocations += int64(s[len(kinds)+1])
		if bytes := s[len(kinds)+2:]; len(bytes) > 0 {
			line.GhostBytesRaw += int64(bytes[0])
			line.GhostBytesSent += int64(bytes[1])
		}
	}
	return t.reporter.Epoch(line)
}

// invoked counts the invocations of a backend since it was asked last.
type invoked struct {
	backend tensor.Backend
	before  int64
}

// take is how many there were.
func (i *invoked) take() int64 {
	n := tensor.Invocations(i.backend)
	since := n - i.before
	i.before = n
	return since
}

// gatherFloats brings everybody's x to rank 0. Collective.
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
