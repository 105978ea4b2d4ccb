package dorylus

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"siafu/bench/trials"
	"siafu/graph"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// figure5 writes the epochs that each mode needs to reach the accuracy of the pipe, and the
// fractions of intervals and gathers of all epochs that read older weights and rows. The paper's
// target is the accuracy at which two epochs differ by less than 0.1 points.
func (b *bench) figure5(s *trials.Sheet) {
	for _, g := range b.slowGraphs(s, "figure5") {
		curves := &chart.Chart{Name: "figure5-" + g.name, Title: "Figure 5, " + g.name, X: "epoch",
			Y: "validation accuracy, %", Whole: true}
		var base []*trials.Result
		for k, w := range []mode{pipe, noWait0, noWait1, async0, async1} {
			list := b.trainForAccuracy(s, g, "gcn", w)
			if k == 0 {
				base = list
			}
			to := trials.Target(base)
			printed, accuracy := math.NaN(), math.NaN()
			if g.accuracy > 0 {
				printed, accuracy = append([]float64{1}, append(g.ratio[:], g.ratio[:]...)...)[k], g.accuracy
			}
			s.Add(g.name, w.name, trials.PlusMinus(trials.Best(list)), to, trials.Reaching(list, to), relativeEpochs(list, base, to),
				stale(list), printed, accuracy)
			curves.Lines = append(curves.Lines, line(w.name, list, func(k int) float64 { return float64(k) }))
		}
		s.Draw(curves)
	}
}

// relativeEpochs formats R, the epochs to a target divided by those of the synchronous run with
// the same seed: mean and deviation, or the number of runs that never reach the target.
func relativeEpochs(list, base []*trials.Result, to float64) string {
	var ratios []float64
	never := 0
	for k := range min(len(list), len(base)) {
		r := trials.Reaching(list[k:k+1], to) / trials.Reaching(base[k:k+1], to)
		if math.IsInf(r, 1) {
			never++
		}
		ratios = append(ratios, r)
	}
	if never > 0 {
		return fmt.Sprintf("%d of %d never", never, len(ratios))
	}
	return trials.PlusMinus(ratios)
}

// stale formats the fractions of intervals that trained with older weights, and of gathers that
// read older rows, as means over epochs and trainings.
func stale(list []*trials.Result) string {
	weights, gathers, n := 0.0, 0.0, 0.0
	for _, r := range list {
		for _, e := range r.Epochs {
			if e.Late != nil {
				weights, gathers, n = weights+e.Late.Weights, gathers+e.Late.Gathers, n+1
			}
		}
	}
	if n == 0 {
		return "-"
	}
	return trials.Number(weights/n, 2) + ", " + trials.Number(gathers/n, 2)
}

// slowGraphs returns the graphs with meaningful labels, and figure 5's in place of synthetic ones,
// which it makes if missing. Friendster's labels are random in the paper: it is left out unless a
// part is the only one.
func (b *bench) slowGraphs(s *trials.Sheet, part string) (list []*graphOf) {
	for _, g := range b.graphs {
		if g.known && g.accuracy == 0 && !slices.Equal(b.Only, []string{part}) {
			continue
		}
		if g.scale > 0 && g.homophily > 0 {
			o, slow := g.synthetic(g.scale), *g
			o.Name, o.Homophily, o.Noise = o.Name+"-slow", g.homophily, g.noise
			var err error
			if slow.Graph, err = trials.Generated(b.Work, o); err == nil {
				slow.meta, err = graph.ReadMeta(slow.Data)
			}
			s.Fail(err)
			g = &slow
		}
		list = append(list, g)
	}
	return list
}

// section73 writes what bounded asynchrony gains to the target of figure 5, with functions.
func (b *bench) section73(s *trials.Sheet) {
	for _, g := range b.slowGraphs(s, "section7.3") {
		to := trials.Target(b.trainForAccuracy(s, g, "gcn", pipe))
		var spent []timeAndCost
		var each, epochs []string
		for _, w := range []mode{pipe, async0, async1} {
			t, n := b.time(s, g, "gcn", functions, w), trials.Reaching(b.trainForAccuracy(s, g, "gcn", w), to)
			each, epochs, spent = append(each, trials.Number(t.each, 4)), append(epochs, trials.Number(n, 0)),
				append(spent, b.localCost(t, n))
		}
		s.Add(g.name, strings.Join(each, ", "), strings.Join(epochs, ", "), spent[0].seconds/spent[1].seconds,
			spent[2].seconds/spent[1].seconds, spent[1].value()/spent[0].value(), spent[1].value()/spent[2].value(),
			fmt.Sprintf("%g, %g", printed3[0], printed3[1]), fmt.Sprintf("%g, %g", printed3[2], printed3[3]))
	}
	fmt.Fprintf(s, "the paper's numbers are means over its graphs; measured dollars take this machine for %s\n", b.Instance)
}

// section74 writes the fraction of an epoch without overlap that exchanges ghost rows.
func (b *bench) section74(s *trials.Sheet) {
	for _, g := range b.graphs {
		m := b.modelOf(s, g, "gcn")
		for _, on := range backends {
			t := b.time(s, g, "gcn", on, nopipe)
			ghosts, own, printed := 0.0, 0.0, "-"
			if t.run != nil {
				for _, r := range t.run.Summary.PerRank {
					ghosts, own = ghosts+float64(r.Ghosts), own+float64(r.Vertices)
				}
			}
			epoch, cards := b.epoch(m, b.clusterOf(g, on), on, false)
			switch {
			case g.name == "amazon" || g.name == "friendster":
				printed = "larger"
			case g.known:
				printed = "smaller"
			}
			s.Add(g.name, on.name+notRun(t.why), ghosts/own, t.perEpoch(waiting)/t.each, cards/epoch, printed)
		}
	}
}

func waiting(e runfolder.Epoch) float64 { return e.WaitSeconds }

// line returns the mean accuracy of trainings over x(epochs).
func line(name string, list []*trials.Result, x func(epochs int) float64) chart.Line {
	mean, deviation := trials.MeanCurve(list, accuracies)
	at := make([]float64, len(mean))
	for k := range at {
		at[k] = x(k)
	}
	l := trials.Line(name, at, mean, deviation)
	l.Group = groupOf(name)
	return l
}

// accuracies returns the accuracies of the weights after 0, 1, 2 … epochs, in percent.
func accuracies(r *trials.Result) (list []float64) {
	for _, e := range r.Epochs {
		if e.ValAcc == nil {
			break
		}
		list = append(list, 100**e.ValAcc)
	}
	return append(list, 100*r.Summary.FinalValAcc)
}

// figure6 writes the time of an epoch relative to the pipe's.
func (b *bench) figure6(s *trials.Sheet) {
	for _, g := range b.graphs {
		m := b.modelOf(s, g, "gcn")
		for _, on := range backends[:2] {
			var measured []float64
			base, why := math.NaN(), ""
			for k, w := range []mode{pipe, nopipe, async0, async1} {
				t := b.time(s, g, "gcn", on, w)
				if k == 0 {
					base, measured, why = t.each, []float64{t.each}, t.why
					continue
				}
				measured = append(measured, t.each/base)
			}
			modelled, printed := math.NaN(), "-"
			if m.covers(on) {
				c := b.clusterOf(g, on)
				modelled = m.Seconds(c, on, false) / m.Seconds(c, on, true)
			}
			if on.name == functions.name && g.name == "amazon" {
				printed = "1.9 (§7.6)"
			}
			s.Add(g.name, on.name+notRun(why), measured, modelled, printed, "about 0.85")
		}
	}
}

// clusterOf returns the cluster of a GCN on a graph.
func (b *bench) clusterOf(g *graphOf, on backend) cluster {
	for _, w := range b.works() {
		if w.graph == g.name {
			return w.cluster(on)
		}
	}
	return cluster{}
}

// notRun marks a row that was not run.
func notRun(why string) string {
	if why == "" {
		return ""
	}
	return " (not run)"
}

// sparse returns the graph of figures 8 and 10: Amazon, or else the first one.
func (b *bench) sparse() *graphOf {
	if g := b.find("amazon"); g != nil {
		return g
	}
	return b.graphs[0]
}

// figure10a writes the seconds of tasks that do not overlap.
func (b *bench) figure10a(s *trials.Sheet) {
	g := b.sparse()
	head := []string{"task"}
	var columns []timed
	for _, on := range backends {
		t := b.time(s, g, "gcn", on, nopipe)
		columns = append(columns, t)
		head = append(head, on.name+" s/epoch, measured"+notRun(t.why)+"|%.4f")
	}
	m := b.modelOf(s, g, "gcn")
	onGPUs := b.clusterOf(g, gpuOnly)
	epoch, cards := b.epoch(m, onGPUs, gpuOnly, false)
	s.Columns(append(head, "GPU only s/epoch, modelled|%.4f")...)
	picture := &chart.Chart{Name: "figure10a", Title: "Figure 10(a): seconds of tasks, no-pipe, " + g.name, X: "seconds"}
	row := func(name string, of func(runfolder.Epoch) float64, modelled float64) {
		var measured []float64
		for k, t := range columns {
			measured = append(measured, t.perEpoch(of))
			picture.Bars = append(picture.Bars, bar(name+", "+backends[k].name, backends[k].name, measured[k])...)
		}
		s.Add(name, measured, modelled)
	}
	for _, task := range schedule.Kinds() {
		modelled := math.NaN()
		if !math.IsNaN(epoch) {
			modelled = m.GPU.seconds(task, gpus[onGPUs.instance], onGPUs.count)
		}
		row(task, func(e runfolder.Epoch) float64 { return e.TaskSeconds[task] }, modelled)
	}
	row("without a task", waiting, cards)
	row("epoch", trials.Seconds, epoch)
	s.Draw(picture)
	fmt.Fprintf(s, "GCN on %s (%s); a worker's mean of the slowest rank; of functions AV and ∇AV are what the rank does for them, and the "+
		"wait for them is without a task; modelled on %s, where the exchange of ghost rows is without a task\n", g.name, g.kind(), onGPUs)
}

// variants has the five variants of figure 10(b).
var variants = []struct {
	name string
	on   backend
	mode mode
}{
	{"no-pipe", functions, nopipe}, {"pipe", functions, pipe}, {"async (s=0)", functions, async0},
	{"CPU only", cpuOnly, pipe}, {"GPU only", gpuOnly, pipe},
}

// figure10b writes the dollars of servers and of functions for an epoch.
func (b *bench) figure10b(s *trials.Sheet) {
	g := b.sparse()
	m := b.modelOf(s, g, "gcn")
	for _, v := range variants {
		t := b.time(s, g, "gcn", v.on, v.mode)
		servers, invoked := b.localDollars(t, 1)
		at := b.clusterOf(g, v.on)
		each, _ := b.epoch(m, at, v.on, v.mode.name != nopipe.name)
		hosts, calls := m.Cost(at, each, 1, v.on)
		says := "-"
		if v.on.name == functions.name {
			says = "functions about as much as servers"
		}
		s.Add(v.name+notRun(t.why), t.each, servers, invoked, each, hosts, calls, says)
	}
	fmt.Fprintf(s, "GCN on %s (%s); measured on this machine as %s, modelled on %s and %s\n", g.name, g.kind(), b.Instance,
		b.clusterOf(g, cpuOnly), b.clusterOf(g, gpuOnly))
}

// basis writes the parameters of the cost models, and compares the models with runs on this
// machine.
func (b *bench) basis(s *trials.Sheet) {
	for _, w := range b.works() {
		g := b.find(w.graph)
		m := b.modelOf(s, g, w.model)
		if !m.covers(cpuOnly) {
			s.Add(w.model, w.graph, slices.Repeat([]float64{math.NaN()}, 9))
			continue
		}
		edgeRatio, vertexRatio := g.ratios()
		here := (m.Graph/edgeRatio + m.Tensor/vertexRatio) / float64(b.Ranks*b.threads())
		var ratios []float64
		for _, mode := range []mode{nopipe, pipe} {
			ratios = append(ratios, here/b.time(s, g, w.model, cpuOnly, mode).each)
		}
		s.Add(w.model, w.graph, edgeRatio, vertexRatio, m.Graph, m.Tensor, m.Rows/1e6, m.Values/1e6, m.Invocations, ratios)
	}
	fmt.Fprintln(s, "an epoch at the paper's size; Model in the package says how times and dollars follow from these")
}
