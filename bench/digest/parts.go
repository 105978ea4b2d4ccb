package digest

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/bench/trials"
	"siafu/ranks/runfolder"
)

// parts returns the parts in the order of the paper; accuracy and links are our own.
func (b *bench) parts() []trials.Part {
	return []trials.Part{
		{Name: "table1", Title: "accuracy and speed-up of an epoch", Paper: "up to 21.82 x as fast as DGL (abstract); accuracy above DGL's and LLCG's in all cases but GAT on ogbn-arxiv", Write: b.table1},
		{Name: "figure3", Title: "accuracy and loss over time", Paper: "DIGEST reaches more in the same time than LLCG and DGL on all four graphs", Write: b.curves("figure3", "")},
		{Name: "figure4", Title: "seconds an epoch", Paper: "DIGEST below LLCG and DGL", Write: b.figure4},
		{Name: "figure5", Title: "scaling out", Paper: "DIGEST scales best of the three", Write: b.figure5},
		{Name: "figure6", Title: "period of refreshing", Paper: "best accuracy over time at N = 10; N = 1 and 20 are worse", Write: b.of(table{columns: compared, systems: periods(1, 2, 5, 10, 20), timed: true})},
		{Name: "figure7", Title: "a straggler", Paper: "one of 8 workers stands still for 8 to 10 s; DIGEST-A far ahead of the synchronous ones", Write: b.straggling("exact-wait", "LLCG", "DIGEST", "DIGEST-A")},
		{Name: "figure8", Title: "accuracy and loss of GAT over time", Paper: "as figure 3", Write: b.curves("figure8", "gat")},
		{Name: "table4", Title: "memory", Paper: "DIGEST takes the least of the four (of a GPU's memory)",
			Write: b.of(table{columns: "graph, ranks, system, peak MB of a rank, to exact-wait, arrays MB", timed: true})},
		{Name: "figure9", Title: "ghosts to own vertices", Paper: "58.43 % on ogbn-products, more on flickr and reddit",
			Write: b.of(table{columns: "graph, ranks, partitioner, ghosts, own vertices, ratio", names: []string{Systems()[0].Name}, timed: true})},
		{Name: "figure10", Title: "error of the gradient", Paper: "after fewer than 10 to 20 epochs close to the exact one", Write: b.figure10},
		{Name: "figure11", Title: "beside PipeGCN and GNNAutoScale, with a straggler", Paper: "DIGEST takes 24.13 % less time an epoch than PipeGCN; DIGEST-A 48.98 % less time to the target than PipeGCN and 19.12 % less than GNNAutoScale", Write: b.straggling("PipeGCN", "GNNAutoScale", "DIGEST", "DIGEST-A")},
		{Name: "accuracy", Title: "accuracy alone, without hosts of this machine",
			Write: b.of(table{columns: "graph, network, ranks, system, validation F1, test F1, MB/epoch", network: "all"}), Extra: true},
		{Name: "links", Title: "which system over which link", Write: b.links},
	}
}

// compared has the columns of a comparison with exact training.
const compared = "graph, ranks, system, validation F1, s/epoch, MB/epoch, epochs to target, seconds to target"

// table1 writes every system in every setting.
func (b *bench) table1(t *trials.Sheet) {
	b.write(t, table{columns: "graph, network, ranks, system, validation F1, test F1, s/epoch, speed-up, MB/epoch, epochs to target, seconds to target",
		network: "all", timed: true,
		end: func(c setting) { fmt.Fprintf(t, "\t\t\ttarget\t%s\n", trials.Number(b.target(t, c), 2)) }})
}

// periods returns DIGEST with periods of refreshes in epochs.
func periods(epochs ...int) (list []System) {
	for _, n := range epochs {
		s := system(fmt.Sprintf("N = %d", n), fmt.Sprintf("--refresh every:%d", n), "")
		s.Period = n
		list = append(list, s)
	}
	return list
}

// figure4 writes the seconds of an epoch, one column per system.
func (b *bench) figure4(t *trials.Sheet) {
	columns := []string{"graph", "ranks"}
	for _, s := range b.systems {
		columns = append(columns, s.Name)
	}
	t.Row(columns...)
	for _, c := range b.cells(b.Models[0]) {
		times := b.times(t, c, b.systemsOf(table{timed: true}, c.model), b.rates[0])
		cells := []string{c.graph.Name, strconv.Itoa(c.ranks)}
		for _, s := range b.systems {
			cells = append(cells, trials.Number(seconds(times[s.Name]), 4))
		}
		t.Row(cells...)
	}
}

// figure5 writes the speed-up over exact training on one rank, by ranks. One rank waits for no
// exchange.
func (b *bench) figure5(t *trials.Sheet) {
	const most = 8
	t.Row("graph", "system", "1 rank, s/epoch", "2 ranks", "4 ranks", "8 ranks")
	for _, g := range b.graphs {
		base := math.NaN()
		if alone := t.Get(trials.Trial{Data: g.Data, Ranks: 1, Flags: b.flags(setting{g, b.Models[0], 1}, exact(),
			"--epochs", strconv.Itoa(b.Timed), "--eval-every", "0", "--threads", "1")}); alone != nil {
			base = seconds([]*trials.Result{alone})
		}
		for _, s := range b.only("exact-wait", "exact", "exact-computed", "DIGEST", "LLCG") {
			cells := []string{g.Name, s.Name, trials.Number(base, 4)}
			for n := 2; n <= most; n *= 2 {
				times := b.times(t, setting{g, b.Models[0], n}, []System{s}, b.rates[0])
				cells = append(cells, trials.Number(base/seconds(times[s.Name]), 2))
			}
			t.Row(cells...)
		}
	}
}

// straggling returns the comparison of systems with a straggler: a rank pauses before each of
// its gathers, for the longest epoch time of exact training over all graphs. The paper's
// straggler paused for 8 to 10 s.
func (b *bench) straggling(names ...string) func(*trials.Sheet) {
	return func(t *trials.Sheet) {
		longest := 0.0
		for _, c := range b.cells(b.Models[0]) {
			times := b.times(t, c, b.systems[:1], b.rates[0])
			if each := seconds(times[b.systems[0].Name]); each > longest {
				longest = each
			}
		}
		wait := time.Duration(longest * float64(time.Second)).Round(time.Millisecond)
		delay := []string{"--delay", fmt.Sprintf("0:%v:1", wait)}
		fmt.Fprintf(t, "straggler: %s\n", strings.Join(delay, " "))
		b.write(t, table{columns: compared, names: names, timed: true, delay: delay})
	}
}

// measuredEvery is the interval of staleness measurements in epochs. It must not divide the
// periods of refreshes.
const measuredEvery = 3

// errorEpochs has the columns of figure 10: epochs with measurements.
var errorEpochs = []int{1, 4, 10, 19, 40, 58, 97}

// figure10 writes the error of the gradient during training and, after it, the relative staleness
// of the stalest layer.
func (b *bench) figure10(t *trials.Sheet) {
	p := table{columns: "graph, ranks, system",
		names: []string{"DIGEST", "DIGEST-rows", "PipeGCN", "PipeGCN-GF", "BNS-GCN", "DistGNN", "SANCUS", "REST", "PipeQS", "partition-only"}}
	for _, e := range errorEpochs {
		p.more = append(p.more, fmt.Sprintf("epoch %d", e))
	}
	p.cells = func(c *row) (cells []string) {
		r := t.Get(trials.Trial{Data: c.graph.Data, Ranks: c.worldSize(c.System), Flags: b.flags(c.setting, c.System,
			"--epochs", strconv.Itoa(b.Epochs), "--eval-every", "0", "--measure-staleness", strconv.Itoa(measuredEvery))})
		for _, e := range errorEpochs {
			cells = append(cells, errorsIn(r, e))
		}
		return cells
	}
	b.write(t, p)
}

// errorsIn returns the errors of one epoch of a training.
func errorsIn(r *trials.Result, epoch int) string {
	if r == nil {
		return "-"
	}
	k := slices.IndexFunc(r.Epochs, func(e runfolder.Epoch) bool { return e.Epoch == epoch })
	if k < 0 || r.Epochs[k].Staleness == nil {
		return "-"
	}
	s := r.Epochs[k].Staleness
	return fmt.Sprintf("%.3f, %.3f", s.GradientError, s.Most())
}

// links writes, for every link, the seconds of each system to the target, and the fastest system
// that ends at most half a point below exact training.
func (b *bench) links(t *trials.Sheet) {
	p := table{columns: "graph, ranks, system, validation F1", timed: true}
	for _, r := range b.Rates {
		p.more = append(p.more, "s to target, "+r)
	}
	fastest, least := make([]string, len(b.rates)), make([]float64, len(b.rates))
	p.cells = func(r *row) (cells []string) {
		for i, rate := range b.rates {
			turns := b.times(t, r.setting, []System{r.System}, rate)[r.Name]
			list := r.list()
			if r.Timely {
				list = turns
			}
			_, until := reaching(list, r.System, b.target(t, r.setting), seconds(turns))
			if until > 0 && !math.IsInf(until, 1) && (fastest[i] == "" || until < least[i]) {
				fastest[i], least[i] = r.Name, until
			}
			cells = append(cells, trials.Number(until, 2))
		}
		return cells
	}
	p.end = func(c setting) {
		t.Row(append([]string{c.graph.Name, strconv.Itoa(c.ranks), "fastest", trials.Number(b.target(t, c), 2)}, fastest...)...)
		clear(fastest)
	}
	b.write(t, p)
}

// shares has the columns of curves: fractions of the time of exact training.
var shares = []float64{0.05, 0.1, 0.2, 0.5, 1}

// curves returns a figure of accuracy and loss at fractions of exact training's time. All
// points are in a CSV file in the work folder.
func (b *bench) curves(name, network string) func(*trials.Sheet) {
	return func(t *trials.Sheet) {
		var csv strings.Builder
		csv.WriteString("graph,ranks,system,seed,epoch,seconds,loss,validation\n")
		p := table{columns: "graph, ranks, system", network: network, timed: true}
		for _, x := range shares {
			p.more = append(p.more, fmt.Sprintf("F1, loss at %g %%", 100*x))
		}
		p.cells = func(r *row) (cells []string) {
			list, each := r.list(), seconds(r.turns)
			for _, x := range shares {
				cells = append(cells, at(list, r.System, each, x*seconds(r.first.turns)*float64(b.Epochs)))
			}
			for seed, one := range list {
				writeCurve(&csv, fmt.Sprintf("%s,%d,%s,%d", r.graph.Name, r.ranks, r.Name, seed+1), one, r.System, each)
			}
			return cells
		}
		b.write(t, p)
		t.Points(filepath.Join(b.Work, name+".csv"), csv.String())
	}
}

// clock returns the seconds after each epoch of a training.
func clock(r *trials.Result, s System, each float64) []float64 {
	x, sum := make([]float64, len(r.Epochs)), 0.0
	for k, e := range r.Epochs {
		if sum += each; s.Timely {
			sum += e.Seconds - each
		}
		x[k] = sum
	}
	return x
}

// at returns the mean accuracy and loss of trainings after some seconds.
func at(list []*trials.Result, s System, each, when float64) string {
	var acc, loss []float64
	for _, r := range list {
		c := clock(r, s, each)
		k := 0
		for k < len(c) && c[k] <= when {
			k++
		}
		if k == 0 || r.Epochs[k-1].ValAcc == nil {
			return "-"
		}
		acc, loss = append(acc, 100**r.Epochs[k-1].ValAcc), append(loss, r.Epochs[k-1].Loss)
	}
	a, _ := trials.MeanStd(acc)
	l, _ := trials.MeanStd(loss)
	return trials.Number(a, 2) + ", " + trials.Number(l, 3)
}

func writeCurve(w io.Writer, label string, r *trials.Result, s System, each float64) {
	for k, sec := range clock(r, s, each) {
		e := r.Epochs[k]
		val := ""
		if e.ValAcc != nil {
			val = fmt.Sprintf("%.5f", *e.ValAcc)
		}
		fmt.Fprintf(w, "%s,%d,%.5f,%.6f,%s\n", label, e.Epoch, sec, e.Loss, val)
	}
}
