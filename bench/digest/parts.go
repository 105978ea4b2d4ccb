package digest

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"siafu/bench/trials"
	"siafu/internal/durable"
)

// parts returns the parts in the order of the paper; accuracy and links are our own.
func (b *bench) parts() []trials.Part {
	return []trials.Part{
		{Name: "table1", Title: "accuracy and speed-up of an epoch", Paper: "up to 21.82 x as fast as DGL (abstract); accuracy above DGL's and LLCG's in all cases but GAT on ogbn-arxiv", Write: b.table1},
		{Name: "figure3", Title: "accuracy and loss over time", Paper: "DIGEST reaches more in the same time than LLCG and DGL on all four graphs", Write: b.figure3},
		{Name: "figure4", Title: "seconds an epoch", Paper: "DIGEST below LLCG and DGL", Write: b.figure4},
		{Name: "figure5", Title: "scaling out", Paper: "DIGEST scales best of the three", Write: b.figure5},
		{Name: "figure6", Title: "period of refreshing", Paper: "best accuracy over time at N = 10; N = 1 and 20 are worse", Write: b.figure6},
		{Name: "figure7", Title: "a straggler", Paper: "one of 8 workers stands still for 8 to 10 s; DIGEST-A far ahead of the synchronous ones", Write: b.figure7},
		{Name: "figure8", Title: "accuracy and loss of GAT over time", Paper: "as figure 3", Write: b.figure8},
		{Name: "table4", Title: "memory", Paper: "DIGEST takes the least of the four (of a GPU's memory)", Write: b.table4},
		{Name: "figure9", Title: "ghosts to own vertices", Paper: "58.43 % on ogbn-products, more on flickr and reddit", Write: b.figure9},
		{Name: "figure10", Title: "error of the gradient", Paper: "after fewer than 10 to 20 epochs close to the exact one", Write: b.figure10},
		{Name: "figure11", Title: "beside PipeGCN and GNNAutoScale, with a straggler", Paper: "DIGEST takes 24.13 % less time an epoch than PipeGCN; DIGEST-A 48.98 % less time to the target than PipeGCN and 19.12 % less than GNNAutoScale", Write: b.figure11},
		{Name: "accuracy", Title: "accuracy alone, without hosts of this machine", Write: b.accuracies, Extra: true},
		{Name: "links", Title: "which system over which link", Write: b.links},
	}
}

// cells returns all combinations of graphs, ranks and the given networks.
func (b *bench) cells(models []string) []setting {
	var list []setting
	for _, g := range b.graphs {
		for _, n := range b.Ranks {
			for _, m := range models {
				list = append(list, setting{g, m, n})
			}
		}
	}
	return list
}

// table1 prints every system in every setting.
func (b *bench) table1(ctx context.Context, t *trials.Sheet) error {
	t.Head("graph", "network", "ranks", "system", "validation F1", "test F1", "s/epoch", "speed-up", "MB/epoch", "epochs to target", "seconds to target")
	for _, c := range b.cells(b.Models) {
		times, err := b.times(ctx, c, systemsOf(b.systems, c.model), b.rates[0])
		if err != nil {
			return err
		}
		base := trials.PerEpoch(times[b.systems[0].Name], trials.Seconds)
		target := math.NaN()
		for k, s := range systemsOf(b.systems, c.model) {
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			if k == 0 {
				target = b.target(list)
			}
			each := trials.PerEpoch(times[s.Name], trials.Seconds)
			epochs, until := reaching(list, s, target, each)
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", c.graph.Name, c.model, c.ranks, s.Name, trials.PlusMinus(trials.Best(list)), trials.PlusMinus(testAccuracies(list)),
				trials.Number(each, 4), trials.Number(base/each, 2), trials.Number(trials.PerEpoch(times[s.Name], trials.Sent)/1e6, 2), trials.Number(epochs, 0), trials.Number(until, 2))
		}
		fmt.Fprintf(t, "\t\t\ttarget\t%s\n", trials.Number(target, 2))
	}
	return nil
}

// accuracies writes the part of table 1 that needs no links: systems whose accuracy does not
// depend on time.
func (b *bench) accuracies(ctx context.Context, t *trials.Sheet) error {
	t.Head("graph", "network", "ranks", "system", "validation F1", "test F1", "MB/epoch")
	for _, c := range b.cells(b.Models) {
		for _, s := range systemsOf(b.systems, c.model) {
			if s.Timely {
				continue
			}
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t\n", c.graph.Name, c.model, c.ranks, s.Name, trials.PlusMinus(trials.Best(list)), trials.PlusMinus(testAccuracies(list)),
				trials.Number(trials.PerEpoch(list, trials.Sent)/1e6, 2))
		}
	}
	return nil
}

// target returns the validation accuracy to reach: half a point below the mean of the best
// ones of exact training.
func (b *bench) target(exact []*trials.Result) float64 {
	mean, _ := trials.MeanStd(trials.Best(exact))
	return mean - 0.5
}

func (b *bench) figure3(ctx context.Context, t *trials.Sheet) error {
	return b.curves(ctx, t, "figure3", b.Models[0])
}

func (b *bench) figure8(ctx context.Context, t *trials.Sheet) error {
	return b.curves(ctx, t, "figure8", "gat")
}

// shares has the columns of curves: fractions of the time of exact training.
var shares = []float64{0.05, 0.1, 0.2, 0.5, 1}

// curves writes accuracy and loss at fractions of exact training's time, and all points to a
// CSV file in the work folder.
func (b *bench) curves(ctx context.Context, t *trials.Sheet, name, model string) error {
	var csv strings.Builder
	csv.WriteString("graph,ranks,system,seed,epoch,seconds,loss,validation\n")
	columns := []string{"graph", "ranks", "system"}
	for _, x := range shares {
		columns = append(columns, fmt.Sprintf("F1, loss at %g %%", 100*x))
	}
	t.Head(columns...)
	for _, c := range b.cells([]string{model}) {
		times, err := b.times(ctx, c, systemsOf(b.systems, c.model), b.rates[0])
		if err != nil {
			return err
		}
		whole := trials.PerEpoch(times[b.systems[0].Name], trials.Seconds) * float64(b.Epochs)
		for _, s := range systemsOf(b.systems, c.model) {
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			each := trials.PerEpoch(times[s.Name], trials.Seconds)
			fmt.Fprintf(t, "%s\t%d\t%s", c.graph.Name, c.ranks, s.Name)
			for _, x := range shares {
				fmt.Fprintf(t, "\t%s", at(list, s, each, x*whole))
			}
			fmt.Fprintln(t, "\t")
			for seed, r := range list {
				writeCurve(&csv, fmt.Sprintf("%s,%d,%s,%d", c.graph.Name, c.ranks, s.Name, seed+1), r, s, each)
			}
		}
	}
	path := filepath.Join(b.Work, name+".csv")
	fmt.Fprintf(t, "all points: %s\n", path)
	return durable.WriteFile(op, path, []byte(csv.String()), os.FileMode(0o666))
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
