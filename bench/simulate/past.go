package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"siafu/graph/fault"
	"siafu/ranks/report"
	"siafu/ranks/runfolder"
	"siafu/ranks/safetensors"
	"siafu/ranks/trace"
)

// past is a run as it was: its timeline, and what its folder knows.
type past struct {
	*Recording
	counts  []Counts  // by graph rank
	bytes   []float64 // by layer: of a row of a ghost, as it travelled
	weights float64   // bytes
	sent    float64   // bytes of rows in an epoch
	seconds float64   // of an epoch, by metrics.jsonl, the mean over the recorded ones
	name    string
}

// read reads the run folder and the timeline.
func (o *Options) read() (*past, error) {
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
		return nil, fault.New(fault.Config, op, o.Run, "the run has left no timeline").Then(`record one: "siafu train --trace FILE"`)
	case s.Refresh != "always" || s.Tensor != "cpu" || set["batch"] != "full" || s.Switched:
		return nil, fault.New(fault.Config, op, o.Run, "it is a run with --refresh %s, --tensor %s and --batch %s", s.Refresh, s.Tensor, set["batch"]).
			Then("only exact training of whole graphs on CPUs is modelled")
	}
	f, err := trace.Read(path)
	if err != nil {
		return nil, err
	}
	p := &past{name: s.Dataset}
	if p.Recording, err = Record(f, path); err != nil {
		return nil, err
	}
	return p, p.take(run, set, path)
}

// take takes what the folder knows of the run whose timeline has been recorded.
func (p *past) take(run *runfolder.Run, set map[string]string, timeline string) error {
	for _, r := range run.Summary.PerRank {
		if r.Role == "graph" {
			p.counts = append(p.counts, Counts{float64(r.Vertices), float64(r.Edges), float64(r.Ghosts)})
		}
	}
	if len(p.counts) != len(p.Ranks) {
		return fault.New(fault.Data, op, timeline, "it has %d graph ranks, and the run in %s %d", len(p.Ranks), run.Dir, len(p.counts)).
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

// measure takes the seconds and bytes of the recorded epochs.
func (p *past) measure(run *runfolder.Run, set map[string]string) error {
	n := 0.0
	for _, e := range run.Epochs {
		if slices.Contains(p.Epochs, e.Epoch) {
			p.seconds += e.Seconds
			p.sent += float64(e.GhostBytesSent)
			n++
		}
	}
	if n == 0 {
		return fault.New(fault.Data, op, run.Dir, "its epochs are not those of the timeline").Then("name the run's own timeline with --trace")
	}
	p.seconds, p.sent = p.seconds/n, p.sent/n
	widths, err := widthsOf(run, set, len(p.Ranks[0].Outline.Layers))
	if err == nil {
		p.bytes = p.share(widths)
	}
	return err
}

// share is the bytes of a row by layer, so that all exchanges of an epoch come to
// what was sent: in proportion to widths.
func (p *past) share(widths []float64) []float64 {
	ghosts, floats, o := 0.0, 0.0, p.Ranks[0].Outline
	for _, c := range p.counts {
		ghosts += c.Ghosts
	}
	for l, of := range o.Layers {
		if of.Gathers && o.Ghosts {
			floats += widths[l]
		}
		if of.GathersBackward && o.Returns {
			floats += widths[l]
		}
	}
	bytes := make([]float64, len(widths))
	for l := range bytes {
		if ghosts*floats > 0 {
			bytes[l] = widths[l] * p.sent / (ghosts * floats)
		}
	}
	return bytes
}

// widthsOf takes the rows of a layer for as wide as the narrower of what goes into it
// and what comes out, as the order of products with the least work has it.
func widthsOf(run *runfolder.Run, set map[string]string, layers int) ([]float64, error) {
	var of map[string]string
	if m := runfolder.ReadMarker(run.Dir); m != nil {
		of = m.Of
	}
	number := func(text string) float64 {
		text, _, _ = strings.Cut(text, " ")
		n, _ := strconv.ParseFloat(text, 64)
		return n
	}
	hidden := float64(run.Summary.Hidden)
	if run.Summary.Model == "gat" {
		hidden *= max(number(set["heads"]), 1)
	}
	dims := []float64{number(of["features"])}
	for range layers - 1 {
		dims = append(dims, hidden)
	}
	dims = append(dims, number(of["classes"]))
	widths := make([]float64, layers)
	for l := range widths {
		if widths[l] = min(dims[l], dims[l+1]); !(widths[l] > 0) {
			return nil, fault.New(fault.Data, op, run.Dir, "it does not say how wide layer %d is", l+1).Then("record the run again")
		}
	}
	return widths, nil
}

func (p *past) String() string {
	first := ""
	if p.First {
		first = ", the first left out"
	}
	return fmt.Sprintf("%s, %d graph ranks (%d servers) x %d workers, --mode %s, %d epochs%s",
		p.name, len(p.Ranks), p.Servers, p.Ranks[0].Workers, p.Info["mode"], len(p.Epochs), first)
}
