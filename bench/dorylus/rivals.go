package dorylus

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siafu/bench/trials"
	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// system is a line of figure 9 and table 5.
type system struct {
	name       string // the paper's, if it has one
	substitute string // of the paper's program on this machine
	on         backend
	mode       mode
	accuracy   map[string]float64 // at its end, by graph, in percent (§7.5)
	absent     bool               // it has no substitute, for the reason in that field
	modelled   backend            // of its model; without a name it has none
	single     bool               // modelled on one server, else on those of table 3
}

// sampling returns a system that trains on mini-batches.
func sampling(name, kind string, accuracy map[string]float64) system {
	return system{name: name, substitute: "--batch " + kind, on: backend{name, []string{"--batch", kind}}, mode: pipe, accuracy: accuracy}
}

// systems returns the paper's systems in its order, and siafu's.
func systems() []system {
	return []system{
		{name: "Dorylus", substitute: "functions, async (s=0)", on: functions, modelled: functions, mode: async0,
			accuracy: map[string]float64{"reddit-small": 95.44, "amazon": 67.01}},
		{name: "Dorylus (GPU only)", substitute: "--tensor cuda", on: gpuOnly, modelled: gpuOnly, mode: pipe},
		sampling("DGL (sampling)", "neighbor:25,10", map[string]float64{"reddit-small": 93.90, "amazon": 65.78}),
		{name: nonSampling, substitute: "PyTorch, one process", on: backend{name: nonSampling}, modelled: gpuOnly, single: true,
			mode: pipe, accuracy: map[string]float64{"reddit-small": 94.01}},
		{name: "AliGraph", substitute: "samples as the line of DGL (sampling) does, from servers of its own", absent: true,
			mode: pipe, accuracy: map[string]float64{"reddit-small": 91.12, "amazon": 65.23}},
		{name: "CPU only", substitute: "--mode pipe", on: cpuOnly, modelled: cpuOnly, mode: pipe},
		sampling("Cluster-GCN", "cluster:8", nil),
		sampling("GNNAutoScale", "history:8", nil),
		sampling("VR-GCN", "variates:8,2", nil),
	}
}

// nonSampling is the paper's name of full-graph training by another program.
const nonSampling = "DGL (non-sampling)"

// raceResult has the measured times, the trainings for accuracy and the modelled costs of a system.
type raceResult struct {
	system
	timed
	list []*trials.Result
	cost func(epochs float64) timeAndCost // modelled
}

func (b *bench) raceSystems(t *trials.Sheet, g *graphOf) (all []raceResult) {
	m := b.modelOf(t, g, "gcn")
	for _, s := range systems() {
		r := raceResult{system: s, timed: timed{each: math.NaN()}}
		switch {
		case s.absent:
			r.why = s.substitute
		case s.name == nonSampling:
			r.timed = b.timeRivals(t, g, "gcn")
		default:
			r.timed = b.time(t, g, "gcn", s.on, s.mode)
		}
		r.cost = func(epochs float64) timeAndCost {
			c := b.clusterOf(g, s.modelled)
			switch {
			case s.modelled.name == "":
				return unknown
			case s.single:
				c.count = 1
			}
			return b.spent(m, c, epochs, s.modelled)
		}
		switch { // full-graph accuracy depends on the mode, not on where tensor work runs
		case r.run == nil && s.modelled.name == "":
		case slices.Contains(s.on.flags, "--batch"):
			r.list = b.trainWith(t, g, "gcn", s.on, b.Epochs, s.on.flags...)
		default:
			r.list = b.trainForAccuracy(t, g, "gcn", s.mode)
		}
		all = append(all, r)
	}
	return all
}

// raceGraphs returns the graphs of figure 9 and table 5, and graphs that are not in the paper.
func (b *bench) raceGraphs() []*graphOf {
	return slices.DeleteFunc(slices.Clone(b.graphs), func(g *graphOf) bool {
		return g.known && g.name != "reddit-small" && g.name != "amazon"
	})
}

// percents has the columns of figure 9: parts of the time of synchronous training on CPUs.
var percents = []float64{5, 10, 20, 50, 100}

// figure9 writes accuracies over time, and all points in a file.
func (b *bench) figure9(s *trials.Sheet) {
	var csv strings.Builder
	csv.WriteString("graph,system,epoch,seconds,validation\n")
	for _, g := range b.raceGraphs() {
		all := b.raceSystems(s, g)
		whole := math.NaN()
		for _, r := range all {
			if r.name == cpuOnly.name {
				whole = r.each * float64(b.Epochs)
			}
		}
		picture := &chart.Chart{Name: "figure9-" + g.name, Title: "Figure 9, " + g.name, X: "seconds",
			Y: "validation accuracy, %", Whole: true}
		later := &chart.Chart{Name: "figure9-" + g.name + "-modelled", Title: "Figure 9, " + g.name + ", on the paper's clusters, modelled",
			X: "seconds", Y: picture.Y, Whole: true}
		for _, r := range all {
			each := r.cost(1).seconds
			if l := line(r.name, r.list, func(k int) float64 { return float64(k) * each }); len(l.Points) > 0 && !math.IsNaN(each) {
				later.Lines = append(later.Lines, l)
			}
			course := line(r.name, r.list, func(k int) float64 { return float64(k) * r.each })
			if math.IsNaN(r.each) {
				course.Points = nil
			}
			var accuracies []float64
			for _, x := range percents {
				accuracies = append(accuracies, at(course, x/100*whole))
			}
			best := math.NaN()
			if p, known := r.accuracy[g.name]; known {
				best = p
			}
			s.Add(g.name, r.name+notRun(r.why), r.substitute, r.each, each, accuracies, trials.PlusMinus(trials.Best(r.list)), best)
			if len(course.Points) > 0 {
				picture.Lines = append(picture.Lines, course)
			}
			for k, q := range course.Points {
				fmt.Fprintf(&csv, "%s,%s,%d,%.4f,%.3f\n", g.name, r.name, k, q.X, q.Y)
			}
		}
		s.Draw(picture)
		s.Draw(later)
	}
	s.Points(filepath.Join(b.Work, "figure9.csv"), csv.String())
}

// at returns the value of a line at x, NaN before its first point.
func at(l chart.Line, x float64) float64 {
	y := math.NaN()
	for _, q := range l.Points {
		if q.X > x {
			break
		}
		y = q.Y
	}
	return y
}

// below has the difference in points of Dorylus's best and the paper's targets of table 5.
var below = map[string]float64{"reddit-small": 95.44 - 93.90, "amazon": 67.01 - 63.00}

// table5 writes time and cost to a target accuracy.
func (b *bench) table5(s *trials.Sheet) {
	for _, g := range b.raceGraphs() {
		all := b.raceSystems(s, g)
		exact := b.trainForAccuracy(s, g, "gcn", pipe)
		to := trials.Target(exact)
		if points, known := below[g.name]; known {
			mean, _ := trials.MeanStd(trials.Best(exact))
			to = mean - points
		}
		first, model, printed := unknown, unknown, unknown
		for k, r := range all {
			epochs := trials.Reaching(r.list, to)
			ours, modelled, p, worth := b.localCost(r.timed, epochs), r.cost(epochs), printed5(g.name, r.name), math.NaN()
			if k == 0 {
				first, model, printed = ours, modelled, p
			}
			if x, known := worth5[g.name][r.name]; known {
				worth = x
			}
			s.Add(g.name, r.name+notRun(r.why), r.substitute, to, epochs, ours.seconds, ours.usd, ours.value()/first.value(),
				modelled.seconds, modelled.usd, modelled.value()/model.value(), p.seconds, p.usd, p.value()/printed.value(),
				first.value()/ours.value(), worth)
		}
	}
	fmt.Fprintf(s, "measured dollars take this machine for %s\n", b.Instance)
}

func printed5(graph, system string) timeAndCost {
	if p, known := table5[graph][system]; known {
		return p
	}
	return unknown
}

// timeRivals returns the seconds of an epoch of the fastest installed one of PyTorch, PyTorch
// Geometric and DGL: with the same graph, layers and initial weights, in one process with all
// processors. Their losses are siafu's (bench epoch --yardstick compares them), and so are
// their accuracies.
func (b *bench) timeRivals(s *trials.Sheet, g *graphOf, model string) timed {
	return b.fastest(s, backend{name: nonSampling},
		[]trials.Trial{{Data: g.Data, Ranks: 1, Flags: append(b.flags(model), "yardstick")}}, b.rival)
}

// pytorch is a runner of the yardstick's rivals.
type pytorch struct{}

// repeats is the duration of a rival's training.
const repeats = 5 * time.Second

func (pytorch) Run(ctx context.Context, t trials.Trial, _ string) (*trials.Result, error) {
	c, err := parsed(t.Flags[:len(t.Flags)-1])
	if err != nil {
		return nil, err
	}
	d, err := graph.Open(t.Data)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	training, err := yardstick.TrainingOf(c, d)
	if err != nil {
		return nil, err
	}
	runner, err := yardstick.NewRunner()
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	r := &trials.Result{Trial: t, Load: trials.Load()}
	var lacking error
	for _, v := range append(training.Variants(d), training.Libraries(d)...) {
		rival, _, err := runner.Train(ctx, d, training, v, repeats)
		switch {
		case fault.KindOf(err) == fault.Missing && err != nil:
			lacking = err
		case err != nil:
			return nil, err
		case r.Epochs == nil || rival.Seconds < r.Epochs[1].Seconds:
			r.Version, r.Epochs = rival.Name, slices.Repeat([]runfolder.Epoch{{Seconds: rival.Seconds}}, 2)
		}
	}
	if r.Epochs == nil {
		return nil, lacking
	}
	return r, nil
}

// parsed returns the configuration of train's flags.
func parsed(flags []string) (c config.Config, err error) {
	err = config.Parse(&c, op, flags...)
	return c, err
}
