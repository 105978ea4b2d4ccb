package sat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"siafu/bench/digest"
	"siafu/bench/trials"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

func (b *bench) parts() []trials.Part {
	return []trials.Part{
		{Name: "figure1", Title: "relative error of rows in use (equation 6)", Paper: "a drawing, without numbers", Write: b.figure1,
			Why: "three layers; errors of layers 2 and 3; `of received` is relative to the received rows of the same training"},
		{Name: "table1", Title: "graphs", Columns: digest.StatisticsColumns,
			Write: func(t *trials.Sheet) { digest.WriteStatistics(t, b.Graphs) }},
		{Name: "table2", Title: "test F1 of distributed training", Paper: "with SAT at least as good in 34 of 35 cells; mean differences " +
			"of +0.37 (GCN, DIGEST) to +0.97 points (GAT, DIGEST)", Write: b.table2},
		{Name: "table3", Title: "memory by layers", Paper: "less than 10 % more (text); 5 to 15 % in the table",
			Why: "arrays of the largest rank, not memory of a GPU", Write: b.table3},
		{Name: "table4", Title: "test F1 of training in mini-batches",
			Paper: "VR-GCN and GNNAutoScale better with SAT in all cells", Write: b.table4,
			Why: "gcn of 2 layers, gcnii of 4; the paper names no depth"},
		{Name: "table5", Title: "seconds of 100 epochs", Paper: "ogbn-papers100M on 32 GPUs: PipeGCN 710, with SAT 769 (8.3 %); DIGEST " +
			"563, with SAT 602 (6.9 %)", Why: "the graphs of --data or of --scale, at the first of --rates", Write: b.table5},
		{Name: "figure3", Title: "test F1 over epochs", Paper: "curves with SAT are above those without; no numbers", Write: b.figure3},
		{Name: "figure4", Title: "training loss and accuracy over time",
			Paper: "curves with SAT converge earlier in most cases; no numbers", Write: b.figure4,
			Why: "seconds until half a point below the best validation accuracy of exact training"},
		{Name: "figure5a", Title: "seconds of predictions by ΔT", Paper: "negligible at ΔT = 20; best from 5 to 15; no numbers",
			Why: "the rank that predicts for longest, in one process; a kind without training has no ΔT, and the same number in " +
				"all columns", Write: b.figure5a},
		{Name: "figure5b", Title: "error of rows of a history (equation 6)",
			Paper: "GNNAutoScale above GraphFM above SAT on all graphs; no numbers", Write: b.figure5b,
			Why: "errors of layers 2 and 3 of three layers, trained without dropout"},
		{Name: "figure5c", Title: "configurations of the predictor",
			Paper: "LSTM above GRU; GAT and GCN are close; no numbers", Write: b.figure5c},
		{Name: "theorem", Title: "mean squared gradient over T in log-log (theorem V.1)",
			Paper: "at most a constant times T^(-2/3)", Write: b.theorem,
			Why: "three layers, no dropout, gradients of measured epochs; the slope is that of the last half of these"},
	}
}

// settingColumns begin the tables with a row for each system and kind of prediction.
const settingColumns = "graph, network, ranks, system, prediction"

// write writes a comparison. Without settings, it has the first network and number of ranks.
func (b *bench) write(t *trials.Sheet, p trials.Comparison) {
	p.Columns = settingColumns
	if p.Settings == nil {
		p.Settings = b.Settings(b.Models[:1], b.Ranks[:1], "")
	}
	b.Study.Write(t, p)
}

// stale are the systems with stale ghost rows.
func stale() []trials.System { return systems("DistGNN", "DIGEST", "PipeGCN") }

// keys has the name of each line of the figures.
func (b *bench) keys() (list []string) {
	for _, s := range b.curves() {
		list = append(list, lineName(s))
	}
	return list
}

func lineName(s trials.System) string { return s.Name + ", " + cmp.Or(s.Kind, "none") }

// addLine adds the line of a system to a chart.
func addLine(to *chart.Chart, s trials.System, x, y []float64) {
	if len(x) > 0 {
		to.Lines = append(to.Lines, trials.Line(lineName(s), x, y, nil))
	}
}

// drawn returns a chart, and a function that adds it to a sheet for each setting and empties it.
func drawn(t *trials.Sheet, name, x, y string) (*chart.Chart, func(trials.Setting)) {
	c := &chart.Chart{Name: name, X: x, Y: y}
	return c, func(s trials.Setting) {
		full := *c
		full.Name, full.Title = name+"-"+s.Graph.Name, y+", "+s.Graph.Name
		t.Draw(&full)
		c.Lines = nil
	}
}

// errorEpochs are the columns of figure 1: epochs with measurements.
var errorEpochs = []int{4, 10, 19, 40, 58, 97}

// period is the period of refreshes of DIGEST. Means of errors begin after it.
const period = 10

func (b *bench) figure1(t *trials.Sheet) {
	picture, end := drawn(t, "figure1", "epoch", "error of the stalest layer")
	b.write(t, trials.Comparison{Systems: b.predicted(false, stale()...), End: end,
		More: append(trials.Columns("epoch %d", errorEpochs), fmt.Sprintf("mean after %d", period), "of received"),
		Cells: func(r *trials.Row) (cells []any) {
			epochs := b.Staleness(t, r.Setting, r.System, "--layers", "3")
			for _, e := range errorEpochs {
				used, _ := errorsOf(epochs, e, e)
				cells = append(cells, join(used))
			}
			var x, y []float64
			for _, e := range epochs {
				if e.Staleness != nil {
					x, y = append(x, float64(e.Epoch)), append(y, e.Staleness.Most())
				}
			}
			addLine(picture, r.System, x, y)
			used, received := errorsOf(epochs, period+1, math.MaxInt)
			return append(cells, join(used), join(ratios(used, received)))
		}})
}

func ratios(x, y []float64) (list []float64) {
	for k := range x {
		list = append(list, x[k]/y[k])
	}
	return list
}

// scores counts the cells of each kind of prediction with a mean at least as high as without
// prediction, and sums the differences.
type scores map[string]*struct{ good, cells, gain float64 }

// add compares a mean with that of the same system without prediction.
func (s scores) add(kind string, with, without float64) {
	if kind == "" || math.IsNaN(with-without) {
		return
	}
	if s[kind] == nil {
		s[kind] = &struct{ good, cells, gain float64 }{}
	}
	s[kind].cells++
	s[kind].gain += with - without
	if with >= without {
		s[kind].good++
	}
}

// print writes the fraction of the cells that are at least as good.
func (s scores) print(t *trials.Sheet, kinds []string) {
	for _, kind := range append(slices.Clone(kinds), paperAlgorithm) {
		if x := s[kind]; x != nil {
			fmt.Fprintf(t, "%s: at least as good as without in %g of %g cells (%.0f %%), mean difference %+.2f points\n", kind, x.good,
				x.cells, 100*x.good/x.cells, x.gain/x.cells)
		}
	}
}

// compare writes test accuracies without and with predictions, beside the paper's.
func (b *bench) compare(t *trials.Sheet, p trials.Comparison, paper func(row string, r *trials.Row) string,
	more func(*trials.Row) []string) {
	found := scores{}
	base := math.NaN()
	p.More = []string{"validation F1", "test F1", "difference|%.2f", "paper's test F1"}
	p.Cells = func(r *trials.Row) []any {
		list := b.Accuracy(t, r.Setting, r.System, more(r)...)
		mean, _ := trials.MeanStd(trials.Tested(list))
		row := r.Model + " " + r.Name
		if r.Kind == "" {
			base = mean
		} else {
			row += "+"
		}
		found.add(r.Kind, mean, base)
		return []any{trials.PlusMinus(trials.Best(list)), trials.PlusMinus(trials.Tested(list)), mean - base, paper(row, r)}
	}
	b.write(t, p)
	found.print(t, b.kinds)
}

func (b *bench) table2(t *trials.Sheet) {
	b.compare(t, trials.Comparison{Settings: b.Settings(b.Models, b.Ranks, ""),
		Systems: append(systems("exact", "LLCG", "DistDGL", "BNS-GCN", "SANCUS"), b.predicted(false, stale()...)...)},
		func(row string, r *trials.Row) string { return test2.of(row, r.Graph.Name, strconv.Itoa(r.Ranks)) },
		func(*trials.Row) []string { return nil })
}

func (b *bench) table4(t *trials.Sheet) {
	sampled := systems("DistDGL", "Cluster-GCN")
	neighbour := &sampled[0]
	neighbour.Name = "GraphSAGE" // the paper's name
	b.compare(t, trials.Comparison{Settings: b.Settings([]string{"gcn", "gcnii"}, b.Ranks[:1], ""),
		Systems: append(sampled, b.predicted(true, systems("VR-GCN", "GNNAutoScale")...)...)},
		func(row string, r *trials.Row) string { return test4.of(row, r.Graph.Name, "") },
		func(r *trials.Row) []string {
			switch {
			case r.Model == "gcn":
				return nil
			case r.Name == neighbour.Name:
				return []string{"--layers", "4", "--batch", "neighbor:25,10,5,5"}
			}
			return []string{"--layers", "4"}
		})
}

func (b *bench) table3(t *trials.Sheet) {
	p := trials.Comparison{Systems: b.predicted(false, systems("PipeGCN", "DIGEST")...)}
	layers := []string{"2", "3", "4"}
	for _, n := range layers {
		p.More = append(p.More, n+" layers, MB|%.2f", "to none|%.3f", "paper, GB")
	}
	base := make([]float64, len(layers))
	p.Cells = func(r *trials.Row) (cells []any) {
		for k, n := range layers {
			one, _ := b.Get(t, r.Setting, r.System, 0, "--layers", n, "--epochs", strconv.Itoa(2*period+1), "--eval-every", "0")
			arrays, row := trials.Largest(one, trials.ArrayBytes), n+" "+r.Name
			if r.Kind == "" {
				base[k] = arrays
			} else {
				row += "+"
			}
			cells = append(cells, arrays/1e6, arrays/base[k], memory3.of(row, r.Graph.Name, ""))
		}
		return cells
	}
	b.write(t, p)
}

func (b *bench) table5(t *trials.Sheet) {
	base := math.NaN()
	b.write(t, trials.Comparison{Systems: b.predicted(false, systems("PipeGCN", "DIGEST")...), Timed: true,
		Settings: b.Settings(b.Models[:1], b.Ranks[:1], b.Rates[0]), More: []string{"s of 100 epochs|%.2f", "more than none, %|%.1f"},
		Cells: func(r *trials.Row) []any {
			if r.Kind == "" {
				base = r.Seconds()
			}
			return []any{100 * r.Seconds(), 100 * (r.Seconds()/base - 1)}
		}})
}

// percents are the columns of figures 3 and 4: parts of the epochs, or of the time of exact
// training.
var percents = []float64{10, 20, 50, 100}

// meanByEpoch returns the mean of a number over trainings, by epoch; NaN for epochs without it.
func meanByEpoch(list []*trials.Result, of func(runfolder.Epoch) *float64) []float64 {
	mean, _ := trials.MeanCurve(list, func(r *trials.Result) (curve []float64) {
		for _, e := range r.Epochs {
			if x := of(e); x != nil {
				curve = append(curve, *x)
			} else {
				curve = append(curve, math.NaN())
			}
		}
		return curve
	})
	return mean
}

// after returns the number of the epoch that precedes n epochs; NaN without one.
func after(numbers []float64, n float64) float64 {
	if !(n >= 1) || len(numbers) == 0 {
		return math.NaN()
	}
	return numbers[min(int(n), len(numbers))-1]
}
