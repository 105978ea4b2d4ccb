package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/ranks/report"
	"siafu/ranks/runfolder"
	"siafu/ranks/trace"
)

// recordedRun has the timeline of a run and the contents of its folder.
type recordedRun struct {
	*Recording
	counts  []Counts    // by graph rank
	rows    [][]float64 // rows that each graph rank (first) sends to each other one (second) in an exchange; nil: unknown
	bytes   []float64   // by layer: of an encoded ghost row
	weights float64     // bytes
	sent    float64     // bytes of rows in an epoch
	seconds float64     // of an epoch in metrics.jsonl, the mean over the recorded epochs
	median  float64     // of the same epochs
	name    string

	dims      []float64 // widths of features, layers and classes
	staleness int
	linger    float64
	tensor    string
	near      bool // functions are processes of the ranks' machine
	atOnce    int  // concurrent invocations of a rank, at the end
	call      Call // the mean invocation
}

// read reads the run folder and the timeline.
func (o *Options) read() (*recordedRun, error) {
	run, err := runfolder.Read(o.Run)
	if err != nil {
		return nil, err
	}
	found, err := report.Find([]string{o.Run})
	if err != nil {
		return nil, err
	}
	set, s := found[0].Settings, &run.Summary
	path := cmp.Or(o.Trace, found[0].Trace)
	switch {
	case path == "":
		return nil, fault.New(fault.Config, op, o.Run, "the run has no timeline").Then(`record one with "siafu train --trace FILE"`)
	case s.Refresh != "always" || s.Tensor != "cpu" && s.Tensor != lambda || set["batch"] != "full" || s.Switched:
		return nil, fault.New(fault.Config, op, o.Run, "the run has --refresh %s, --tensor %s and --batch %s",
			s.Refresh, s.Tensor, set["batch"]).
			Then("use a run of full-graph training on CPUs or in functions with --refresh always")
	}
	f, err := trace.Read(path)
	if err != nil {
		return nil, err
	}
	p := &recordedRun{name: s.Dataset, staleness: s.Staleness, linger: number(set["linger"]), tensor: s.Tensor,
		near: set["lambda"] == "local"}
	if p.Recording, err = Record(f, path); err != nil {
		return nil, err
	}
	if s.Tensor == lambda {
		p.subtractHandovers()
	}
	if o.Least {
		p.takeLeast()
	}
	return p, p.readFolder(run, set, path)
}

// readFolder reads counts, weights and means of the recorded epochs from the run folder.
func (p *recordedRun) readFolder(run *runfolder.Run, set map[string]string, timeline string) error {
	for _, r := range run.Summary.PerRank {
		if r.Role == "graph" {
			p.counts = append(p.counts, Counts{float64(r.Vertices), float64(r.Edges), float64(r.Ghosts)})
			p.rows = append(p.rows, floats(r.RowsTo))
			if r.LambdaAtOnce != nil {
				p.atOnce = max(p.atOnce, r.LambdaAtOnce.Last)
			}
		}
	}
	if slices.ContainsFunc(p.rows, func(to []float64) bool { return len(to) != len(p.rows) }) {
		p.rows = nil
	}
	if len(p.counts) != len(p.Ranks) {
		return fault.New(fault.Data, op, timeline, "it has %d graph ranks, but the run in %s has %d", len(p.Ranks), run.Dir, len(p.counts)).
			Then("name the run's own timeline with --trace")
	}
	tensors, _, err := safetensors.Read(run.Model)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		p.weights += 4 * float64(len(t.Data))
	}
	return p.measure(run, set)
}

// subtractHandovers replaces the mean times between synchronous tasks by medians. The means
// include waits for functions, which a timeline does not record; the medians do not.
func (p *recordedRun) subtractHandovers() {
	for _, k := range p.Ranks {
		for n := range k.Epochs {
			if len(k.Epochs[n].Tasks) > 0 {
				k.Epochs[n].Gap, k.Epochs[n].Left = k.gap, 0
			}
		}
	}
}

// number parses the number at the begin of a setting.
func number(text string) float64 {
	text, _, _ = strings.Cut(text, " ")
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// measure takes the means of the recorded epochs: seconds, bytes of rows, and the time of an
// invocation. The bytes of an invocation are means of all epochs and evaluations.
func (p *recordedRun) measure(run *runfolder.Run, set map[string]string) error {
	n, all, invocations, gbs := 0.0, []float64{}, 0.0, 0.0
	for _, e := range run.Epochs {
		if slices.Contains(p.Epochs, e.Epoch) {
			all = append(all, e.Seconds)
			p.seconds += e.Seconds
			p.sent += float64(e.GhostBytesSent)
			invocations += float64(e.LambdaInvocations)
			gbs += e.LambdaGBSeconds
			n++
		}
	}
	if memory := number(set["lambda-memory"]); invocations > 0 && memory > 0 {
		whole := run.Summary
		total := float64(whole.LambdaInvocations)
		p.call = Call{float64(whole.LambdaBytesSent) / total, float64(whole.LambdaBytesReceived) / total, gbs / invocations / memory * 1024}
	}
	if n == 0 {
		return fault.New(fault.Data, op, run.Dir, "its epochs differ from those of the timeline").
			Then("name the run's own timeline with --trace")
	}
	p.seconds, p.sent, p.median = p.seconds/n, p.sent/n, runfolder.Median(all)
	var err error
	if p.dims, err = dimsOf(run, set, len(p.Ranks[0].Outline.Layers)); err != nil {
		return err
	}
	var widths []float64 // with the cheapest order of products, rows have the smaller width of a layer
	for l := range p.dims[1:] {
		widths = append(widths, min(p.dims[l], p.dims[l+1]))
	}
	p.bytes = p.share(widths)
	return nil
}

// share returns the bytes of a row by layer, in proportion to widths, so that all exchanges of
// an epoch together have the recorded bytes.
func (p *recordedRun) share(widths []float64) []float64 {
	rows, floats := 0.0, 0.0
	for _, c := range p.counts {
		rows += c.Ghosts
	}
	if p.rows != nil {
		rows = 0
		for _, n := range slices.Concat(p.rows...) {
			rows += n
		}
	}
	for _, l := range p.Ranks[0].exchanges(p.paced()) {
		floats += widths[l]
	}
	bytes := make([]float64, len(widths))
	for l := range bytes {
		if rows*floats > 0 {
			bytes[l] = widths[l] * p.sent / (rows * floats)
		}
	}
	return bytes
}

func floats(list []int64) (x []float64) {
	for _, n := range list {
		x = append(x, float64(n))
	}
	return x
}

// dimsOf returns the widths of features, hidden layers and classes.
func dimsOf(run *runfolder.Run, set map[string]string, layers int) ([]float64, error) {
	var of map[string]string
	if m := runfolder.ReadMarker(run.Dir); m != nil {
		of = m.Of
	}
	hidden := float64(run.Summary.Hidden) * max(number(set["heads"]), 1)
	dims := []float64{number(of["features"])}
	for range layers - 1 {
		dims = append(dims, hidden)
	}
	dims = append(dims, number(of["classes"]))
	for l, width := range dims {
		if !(width > 0) {
			return nil, fault.New(fault.Data, op, run.Dir, "it does not record the width of layer %d", max(l, 1)).
				Then("record the run again")
		}
	}
	return dims, nil
}

// recutIntervals models the run with another number of intervals per rank.
func (p *recordedRun) recutIntervals(intervals int) *recordedRun {
	r, other := *p.Recording, *p
	r.Ranks = nil
	for _, k := range p.Ranks {
		r.Ranks = append(r.Ranks, k.recut(false, intervals))
	}
	other.Recording = &r
	return &other
}

func (p *recordedRun) String() string {
	first := ""
	if p.First {
		first = ", the first left out"
	}
	return fmt.Sprintf("%s, %d graph ranks (%d servers) x %d workers, --mode %s, --tensor %s, %d epochs%s",
		p.name, len(p.Ranks), p.Servers, p.Ranks[0].Workers, p.Info["mode"], p.tensor, len(p.Epochs), first)
}
