package spot

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"

	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

// Measured are the times of a run, in seconds.
type Measured struct {
	Run       string  `json:"run"`
	Ranks     int     `json:"ranks"`           // graph ranks at the begin
	Parts     int     `json:"parts,omitempty"` // of the graph, if ranks carry several
	Epoch     float64 `json:"epoch"`           // mean of the epochs after the first one
	Survived  Lost    `json:"survived"`
	Restarted Lost    `json:"restarted"`
}

// Lost is the time that a run lost at events of one kind.
type Lost struct {
	Events  int     `json:"events"`
	Seconds float64 `json:"seconds"` // of an event, without the epoch in progress
}

// eventLine matches the lines of log.txt about a new view, with its number, epoch and total of lost ranks, and
// about resumption, with its epoch and source.
var eventLine = regexp.MustCompile(`(?m)^(?:view number=(\d+) .*after_epoch=(\d+) lost=(\d+) |resume epoch=(\d+) from=(.*)$)`)

// events counts lost ranks and restarts in a log, by the epoch from which the run continued. A view without
// newly lost ranks is no loss: a rank has joined or left. A rank that takes over the run folder resumes from
// memory, which is no restart.
func events(log []byte) (losses, restarts map[int]int) {
	losses, restarts = map[int]int{}, map[int]int{}
	number, lost := 0, 0 // of the last view of this start
	for _, match := range eventLine.FindAllSubmatch(log, -1) {
		field := func(k int) int {
			n, _ := strconv.Atoi(string(match[k])) // digits
			return n
		}
		switch {
		case match[4] == nil:
			if field(1) <= number { // the ranks were started again
				lost = 0
			}
			losses[field(2)] += max(field(3)-lost, 0)
			number, lost = field(1), field(3)
		case string(match[5]) != runfolder.FromMemory:
			restarts[field(4)]++
		}
	}
	return losses, restarts
}

// Measure reads the run folder of a run that has ended, with at least two epochs.
func Measure(dir string) (*Measured, error) {
	run, err := runfolder.Read(dir)
	if err != nil {
		return nil, err
	}
	if len(run.Epochs) < 2 {
		return nil, fault.New(fault.Data, op, dir, "%d epochs", len(run.Epochs)).Then("use a run of at least 2 epochs")
	}
	log, err := os.ReadFile(run.Log)
	if err != nil {
		return nil, fault.System(op, run.Log, err)
	}
	of := &run.Summary
	m := &Measured{Run: dir, Ranks: max(of.Ranks-of.Servers-of.Bridges, 1)}
	if slices.ContainsFunc(of.PerRank, func(r runfolder.RankReport) bool { return r.Part != nil }) {
		m.Parts = of.Parts
	}
	for _, e := range run.Epochs[1:] {
		m.Epoch += e.Seconds
	}
	m.Epoch /= float64(len(run.Epochs) - 1)
	losses, restarts := events(log)
	m.Survived, m.Restarted = m.lost(run.Epochs, losses), m.lost(run.Epochs, restarts)
	return m, nil
}

// lost returns the mean time lost at events, which are counted by the epoch from which the run
// continued. The lost time is from the end of that epoch to the end of the next one, less the time of the
// next one. It includes repeated epochs, and half an epoch in progress on average: this half is subtracted,
// because Cluster.LoseIteration and Cluster.Rollback add it.
func (m *Measured) lost(epochs []runfolder.Epoch, events map[int]int) (l Lost) {
	for k, e := range epochs[1:] {
		before := epochs[k]
		if n := events[before.Epoch]; n > 0 && !before.Time.IsZero() && !e.Time.IsZero() {
			l.Events += n
			l.Seconds += max(e.Time.Sub(before.Time).Seconds()-e.Seconds-e.EvalSeconds-float64(n)*m.Epoch/2, 0)
		}
	}
	l.Seconds = ratio(l.Seconds, float64(l.Events))
	return l
}

// apply replaces inputs by measured ones: a machine is a graph rank. Without a lost rank, the pause after a
// loss is one epoch.
func (m *Measured) apply(in *Inputs) {
	in.Depth, in.MinDepth, in.Microbatches, in.Replicas = 1, 1, 1, m.Ranks
	if m.Parts > 0 {
		in.Parts = max((m.Parts+m.Ranks/2)/m.Ranks, 1)
	}
	in.Batch, in.Iteration, in.Pause = 1, m.Epoch, m.Epoch
	if m.Survived.Events > 0 {
		in.Pause = m.Survived.Seconds
	}
	if m.Restarted.Events > 0 {
		in.Restart = m.Restarted.Seconds
	}
}

func (m *Measured) String() string {
	of := func(l Lost) string {
		if l.Events == 0 {
			return "0"
		}
		return fmt.Sprintf("%d, %.3g s each", l.Events, l.Seconds)
	}
	return fmt.Sprintf("%s: ranks %d; epoch %.3g s; survived losses %s; restarts %s\n", m.Run, m.Ranks, m.Epoch,
		of(m.Survived), of(m.Restarted))
}
