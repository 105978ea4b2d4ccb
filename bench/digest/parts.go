package digest

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/bench/trials"
	"siafu/graph"
	"siafu/internal/host"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// parts returns the parts in the order of the paper; accuracy and links are our own.
func (b *bench) parts() []trials.Part {
	return []trials.Part{
		{Name: "table1", Title: "accuracy and speed-up of an epoch", Paper: "up to 21.82 x as fast as DGL (abstract); accuracy above " +
			"DGL's and LLCG's in all cases but GAT on ogbn-arxiv", Write: b.table1},
		{Name: "table2", Title: "testbed", Paper: "one g4dn.metal of EC2, with 8 T4 GPUs as workers",
			Why: "no GPU; a rank is a process, over links of --rates a host", Columns: []string{"", "paper", "here"}, Write: testbed},
		{Name: "table3", Title: "graphs",
			Paper:   "Flickr, Reddit, ogbn-arxiv and ogbn-products; sizes of SAT's table I, which has the same graphs",
			Columns: StatisticsColumns, Write: func(t *trials.Sheet) { WriteStatistics(t, b.Graphs) }},
		{Name: "figure3", Title: "accuracy and loss over time",
			Paper: "DIGEST reaches more in the same time than LLCG and DGL on all four graphs", Write: b.curves("figure3")},
		{Name: "figure4", Title: "seconds an epoch", Paper: "DIGEST below LLCG and DGL",
			Columns: append([]string{"graph", "ranks"}, trials.Columns("%s|%%.4f", b.keys())...), Write: b.figure4},
		{Name: "figure5", Title: "scaling out", Paper: "DIGEST scales best of the three",
			Columns: []string{"graph", "system", "1 rank, s/epoch|%.4f", "2 ranks|%.2f", "4 ranks|%.2f", "8 ranks|%.2f"}, Write: b.figure5},
		{Name: "figure6", Title: "period of refreshing", Paper: "best accuracy over time at N = 10; N = 1 and 20 are worse",
			Write: b.of(trials.Comparison{Columns: compared, Systems: periods(1, 2, 5, 10, 20), Timed: true})},
		{Name: "figure7", Title: "a straggler", Paper: "one of 8 workers stands still for 8 to 10 s; DIGEST-A far ahead of the " +
			"synchronous ones", Write: b.straggling("exact-wait", "LLCG", "DIGEST", "DIGEST-A")},
		{Name: "figure8", Title: "accuracy and loss of GAT over time", Paper: "as figure 3", Write: b.curves("figure8", "gat")},
		{Name: "table4", Title: "memory", Paper: "DIGEST takes the least of the four (of a GPU's memory)",
			Why: "GraphSAGE is sage with sampled neighbours",
			Write: b.of(trials.Comparison{Columns: "graph, ranks, system, peak MB of a rank, to exact-wait, arrays MB", Timed: true,
				Systems: append(slices.Clone(b.systems), system("GraphSAGE", "--model sage --batch neighbor:25,10"))})},
		{Name: "figure9", Title: "ghosts to own vertices", Paper: "58.43 % on ogbn-products, more on flickr and reddit", Write: b.figure9},
		{Name: "figure10", Title: "error of the gradient",
			Paper: "after fewer than 10 to 20 epochs close to the exact one", Write: b.figure10},
		{Name: "theorem1", Title: "error of the gradient and its bound", Paper: "‖g̃ - g‖ ≤ τ/M Σ_l ε_l (r₁ r₂)^(L-l) Σ_m Δ(G_m)^(L-l)",
			Why: "cells: ‖g̃ - g‖ over all weights, and the bound for τ = r₁ = r₂ = 1, which the paper does not give; ε_l is at most the " +
				"Frobenius norm of the stale rows' error, and Δ of a part the whole graph's", Write: b.theorem1},
		{Name: "figure11", Title: "beside PipeGCN and GNNAutoScale, with a straggler", Paper: "DIGEST takes 24.13 % less time an epoch " +
			"than PipeGCN; DIGEST-A 48.98 % less time to the target than PipeGCN and 19.12 % less than GNNAutoScale",
			Write: b.straggling("PipeGCN", "GNNAutoScale", "DIGEST", "DIGEST-A")},
		{Name: "accuracy", Title: "accuracy alone, without hosts of this machine", Extra: true,
			Write: b.of(trials.Comparison{Columns: "graph, network, ranks, system, validation F1, test F1, MB/epoch"}, b.Models...)},
		{Name: "links", Title: "which system over which link", Write: b.links},
	}
}

// compared has the columns of a comparison with exact training.
const compared = "graph, ranks, system, validation F1, s/epoch, MB/epoch, epochs to target, seconds to target"

// settings returns the settings of parts at the first rate. Without networks, they have the first one.
func (b *bench) settings(networks ...string) []trials.Setting {
	if len(networks) == 0 {
		networks = b.Models[:1]
	}
	return b.Study.Settings(networks, b.Ranks, b.Rates[0])
}

// of returns the function that writes a comparison, of all systems by default.
func (b *bench) of(p trials.Comparison, networks ...string) func(*trials.Sheet) {
	return func(t *trials.Sheet) {
		p.Settings = b.settings(networks...)
		if p.Systems == nil {
			p.Systems = b.systems
		}
		b.Study.Write(t, p)
	}
}

func (b *bench) table1(t *trials.Sheet) {
	b.of(trials.Comparison{Timed: true,
		Columns: "graph, network, ranks, system, validation F1, test F1, s/epoch, speed-up, MB/epoch, epochs to target, seconds to target",
		End:     func(c trials.Setting) { t.Add("", "", "", "target", trials.Number(b.Target(t, c), 2)) }}, b.Models...)(t)
}

// periods returns DIGEST with periods of refreshes in epochs.
func periods(epochs ...int) (list []trials.System) {
	for _, n := range epochs {
		s := system(fmt.Sprintf("N = %d", n), fmt.Sprintf("--refresh every:%d", n))
		s.Period = n
		list = append(list, s)
	}
	return list
}

// figure4 writes the seconds of an epoch, one column per system.
func (b *bench) figure4(t *trials.Sheet) {
	for _, c := range b.settings() {
		var seconds []float64
		for _, turns := range b.Times(t, c, b.systems...) {
			seconds = append(seconds, trials.PerEpoch(turns, trials.Seconds))
		}
		t.Add(c.Graph.Name, c.Ranks, seconds)
	}
}

// figure5 writes the speed-up over exact training on one rank, by ranks. One rank waits for no
// exchange.
func (b *bench) figure5(t *trials.Sheet) {
	for _, g := range b.Graphs {
		c := trials.Setting{Graph: g, Model: b.Models[0], Ranks: 1}
		alone, _ := b.Get(t, c, exact(), 0, "--epochs", strconv.Itoa(b.Timed), "--eval-every", "0", "--threads", "1")
		base := trials.PerEpoch(slices.DeleteFunc([]*trials.Result{alone}, func(r *trials.Result) bool { return r == nil }), trials.Seconds)
		picture := &chart.Chart{Name: "figure5-" + g.Name, Title: "Figure 5, " + g.Name, X: "ranks",
			Y: "speed-up over one rank", Whole: true}
		for _, s := range b.only("exact-wait", "exact", "exact-computed", "DIGEST", "LLCG", "DistDGL") {
			var speeds []float64
			line := chart.Line{Name: s.Name}
			for _, n := range []int{2, 4, 8} {
				c.Ranks, c.Rate = n, b.Rates[0]
				speed := base / trials.PerEpoch(b.Times(t, c, s)[0], trials.Seconds)
				if speeds = append(speeds, speed); !math.IsNaN(speed) {
					line.Points = append(line.Points, chart.Point{X: float64(n), Y: speed})
				}
			}
			t.Add(g.Name, s.Name, base, speeds)
			if len(line.Points) > 0 {
				picture.Lines = append(picture.Lines, line)
			}
		}
		t.Draw(picture)
	}
}

// straggling returns the comparison of systems with a straggler: a rank pauses before each of
// its gathers, for the longest epoch time of exact training over all graphs. The paper's
// straggler paused for 8 to 10 s.
func (b *bench) straggling(names ...string) func(*trials.Sheet) {
	return func(t *trials.Sheet) {
		longest := 0.0
		for _, c := range b.settings() {
			if each := trials.PerEpoch(b.Times(t, c, b.Reference)[0], trials.Seconds); each > longest {
				longest = each
			}
		}
		wait := time.Duration(longest * float64(time.Second)).Round(time.Millisecond)
		delay := []string{"--delay", fmt.Sprintf("0:%v:1", wait)}
		fmt.Fprintf(t, "straggler: %s\n", strings.Join(delay, " "))
		systems := b.only(names...)
		for k := range systems {
			systems[k].Timed = delay
		}
		b.of(trials.Comparison{Columns: compared, Systems: systems, Timed: true})(t)
	}
}

// testbed writes the paper's machine, as far as its text describes it, and this one.
func testbed(t *trials.Sheet) {
	t.Add("machine", "EC2 g4dn.metal", trials.Processor())
	t.Add("processors", "96", runtime.NumCPU())
	t.Add("GPUs", "8 NVIDIA T4", "none used")
	t.Add("available memory, GB", "384", trials.Number(float64(host.AvailableMemory())/1e9, 0))
	t.Add("system", "-", runtime.GOOS+"/"+runtime.GOARCH)
	t.Add("program", "PyTorch, Plasma", "siafu, "+runtime.Version())
}

// figure9 writes and draws the ghosts of partitions.
func (b *bench) figure9(t *trials.Sheet) {
	bars := &chart.Chart{Name: "figure9", Title: "Figure 9: ghosts to own vertices", X: "%"}
	b.of(trials.Comparison{Columns: "graph, ranks, partitioner, ghosts, own vertices", More: []string{"ratio|%.2f %%"},
		Systems: b.systems[:1], Timed: true,
		Cells: func(r *trials.Row) []any {
			ratio := 100 * r.Total(trials.Ghosts) / r.Total(trials.OwnVertices)
			if !math.IsNaN(ratio) {
				bars.Bars = append(bars.Bars, chart.Bar{Name: fmt.Sprintf("%s, %d ranks", r.Graph.Name, r.Ranks), Value: ratio,
					Text: trials.Number(ratio, 2) + " %"})
			}
			return []any{ratio}
		}})(t)
	t.Draw(bars)
}

// errorEpochs has the columns of figure 10: epochs with measurements.
var errorEpochs = []int{1, 4, 10, 19, 40, 58, 97}

// figure10 writes the error of the gradient during training and, after it, the relative staleness
// of the stalest layer.
func (b *bench) figure10(t *trials.Sheet) {
	b.errors(t, func(_ *trials.Row, s *runfolder.Staleness) string {
		return fmt.Sprintf("%.3f, %.3f", s.GradientError, s.Most())
	},
		"DIGEST", "DIGEST-rows", "PipeGCN", "PipeGCN-GF", "BNS-GCN", "DistGNN", "SANCUS", "REST", "PipeQS", "partition-only")
}

// errors writes the cells of the epochs with measurements, for each of these systems.
func (b *bench) errors(t *trials.Sheet, cell func(*trials.Row, *runfolder.Staleness) string, names ...string) {
	trained := slices.DeleteFunc(slices.Clone(errorEpochs), func(epoch int) bool { return epoch > b.Epochs })
	p := trials.Comparison{Columns: "graph, ranks, system", Systems: b.only(names...), More: trials.Columns("epoch %d", trained)}
	p.Cells = func(r *trials.Row) (cells []any) {
		measured := map[int]*runfolder.Staleness{} // by epoch
		for _, e := range b.Staleness(t, r.Setting, r.System) {
			measured[e.Epoch] = e.Staleness
		}
		for _, e := range trained {
			if s := measured[e]; s != nil {
				cells = append(cells, cell(r, s))
			} else {
				cells = append(cells, "-")
			}
		}
		return cells
	}
	b.of(p)(t)
}

// theorem1 writes the error of the gradient and theorem 1's bound of it.
func (b *bench) theorem1(t *trials.Sheet) {
	degrees := map[string]float64{}
	b.errors(t, func(r *trials.Row, s *runfolder.Staleness) string {
		most, known := degrees[r.Graph.Data]
		if !known {
			var err error
			most, err = maxDegree(r.Graph.Data)
			t.Fail(err)
			degrees[r.Graph.Data] = most
		}
		return fmt.Sprintf("%.3g, %.3g", s.GradientError*s.GradientNorm, bound(s, most))
	}, "DIGEST", "DIGEST-rows")
}

// bound returns theorem 1's bound for τ = r₁ = r₂ = 1. A gather in layer l+1 reads rows of layer l.
func bound(s *runfolder.Staleness, degree float64) (sum float64) {
	last := 0
	for _, l := range s.Layers {
		last = max(last, l.Layer)
	}
	for _, l := range s.Layers {
		if l.Layer > 1 {
			sum += l.Difference * math.Pow(degree, float64(last-l.Layer+1))
		}
	}
	return sum
}

// maxDegree returns the largest number of edges into a vertex of a dataset.
func maxDegree(data string) (most float64, err error) {
	d, err := graph.Open(data)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for v := range d.In.Rows() {
		most = max(most, float64(d.In.Offsets[v+1]-d.In.Offsets[v]))
	}
	return most, nil
}

// links writes, for every link, the seconds of each system to the target, and the fastest system
// that ends at most half a point below exact training.
func (b *bench) links(t *trials.Sheet) {
	fastest, least := make([]string, len(b.Rates)), make([]float64, len(b.Rates))
	b.of(trials.Comparison{Columns: "graph, ranks, system, validation F1", Timed: true,
		More: trials.Columns("s to target, %s|%%.2f", b.Rates),
		Cells: func(r *trials.Row) (cells []any) {
			for i, rate := range b.Rates {
				c := r.Setting
				c.Rate = rate
				turns, list := r.At(c), r.Accuracy()
				if r.Timely {
					list = turns
				}
				_, until := r.Reaching(list, b.Target(t, r.Setting), trials.PerEpoch(turns, trials.Seconds))
				if until > 0 && !math.IsInf(until, 1) && (fastest[i] == "" || until < least[i]) {
					fastest[i], least[i] = r.Name, until
				}
				cells = append(cells, until)
			}
			return cells
		},
		End: func(c trials.Setting) {
			t.Add(c.Graph.Name, c.Ranks, "fastest", trials.Number(b.Target(t, c), 2), fastest)
			clear(fastest)
		}})(t)
}

// percents has the columns of curves: fractions of the time of exact training, in percent.
var percents = []float64{5, 10, 20, 50, 100}

// curves returns a figure of accuracy and loss at fractions of exact training's time. All
// points are in a CSV file in the work folder.
func (b *bench) curves(name string, networks ...string) func(*trials.Sheet) {
	return func(t *trials.Sheet) {
		var csv strings.Builder
		csv.WriteString("graph,ranks,system,seed,epoch,seconds,loss,validation\n")
		loss := &chart.Chart{X: "seconds", Y: "training loss"}
		accuracy := &chart.Chart{X: "seconds", Y: "validation F1, %", Whole: true}
		b.of(trials.Comparison{Columns: "graph, ranks, system", Timed: true,
			More: trials.Columns("F1, loss at %g %%", percents),
			End: func(c trials.Setting) {
				for k, picture := range []*chart.Chart{loss, accuracy} {
					full := *picture
					full.Name, full.Title = fmt.Sprintf("%s-%s-%d-%d", name, c.Graph.Name, c.Ranks, k),
						fmt.Sprintf("%s, %s, %d ranks: %s", name, c.Graph.Name, c.Ranks, picture.Y)
					picture.Lines = nil
					t.Draw(&full)
				}
			},
			Cells: func(r *trials.Row) (cells []any) {
				list, each := r.Accuracy(), r.Seconds()
				if !math.IsNaN(each) && len(list) > 0 {
					loss.Lines = append(loss.Lines, line(r.System, list, each, func(e runfolder.Epoch) *float64 { return &e.Loss }, 1))
					accuracy.Lines = append(accuracy.Lines,
						line(r.System, list, each, func(e runfolder.Epoch) *float64 { return e.ValAcc }, 100))
				}
				for _, x := range percents {
					cells = append(cells, at(list, r.System, each, x/100*r.First.Seconds()*float64(b.Epochs)))
				}
				for seed, one := range list {
					writeCurve(&csv, fmt.Sprintf("%s,%d,%s,%d", r.Graph.Name, r.Ranks, r.Name, seed+1), one, r.System, each)
				}
				return cells
			}}, networks...)(t)
		t.Points(filepath.Join(b.Work, name+".csv"), csv.String())
	}
}

// line returns the mean over trainings of a number of their epochs, multiplied by scale, over the
// mean of their seconds, up to the shortest training. Epochs without the number are left out.
func line(s trials.System, list []*trials.Result, each float64, of func(runfolder.Epoch) *float64, scale float64) chart.Line {
	points := func(value func(r *trials.Result, k int) float64) (mean, deviation []float64) {
		return trials.MeanCurve(list, func(r *trials.Result) (curve []float64) {
			for k, e := range r.Epochs {
				if of(e) != nil {
					curve = append(curve, value(r, k))
				}
			}
			return curve
		})
	}
	x, _ := points(func(r *trials.Result, k int) float64 { return clock(r, s, each)[k] })
	y, deviation := points(func(r *trials.Result, k int) float64 { return scale * *of(r.Epochs[k]) })
	return trials.Line(s.Name, x, y, deviation)
}

// clock returns the seconds after each epoch of a training.
func clock(r *trials.Result, s trials.System, each float64) []float64 {
	x, sum := make([]float64, len(r.Epochs)), 0.0
	for k, e := range r.Epochs {
		if sum += each; s.Timely {
			sum += e.Seconds - each
		}
		x[k] = sum
	}
	return x
}

// at returns the mean accuracy and loss of trainings in their last evaluated epochs within some
// seconds.
func at(list []*trials.Result, s trials.System, each, when float64) string {
	var acc, loss []float64
	for _, r := range list {
		c := clock(r, s, each)
		k := len(c) - 1
		for k >= 0 && (c[k] > when || r.Epochs[k].ValAcc == nil) {
			k--
		}
		if k < 0 {
			return "-"
		}
		acc, loss = append(acc, 100**r.Epochs[k].ValAcc), append(loss, r.Epochs[k].Loss)
	}
	a, _ := trials.MeanStd(acc)
	l, _ := trials.MeanStd(loss)
	return trials.Number(a, 2) + ", " + trials.Number(l, 3)
}

func writeCurve(w io.Writer, label string, r *trials.Result, s trials.System, each float64) {
	for k, sec := range clock(r, s, each) {
		e := r.Epochs[k]
		val := ""
		if e.ValAcc != nil {
			val = fmt.Sprintf("%.5f", *e.ValAcc)
		}
		fmt.Fprintf(w, "%s,%d,%.5f,%.6f,%s\n", label, e.Epoch, sec, e.Loss, val)
	}
}
