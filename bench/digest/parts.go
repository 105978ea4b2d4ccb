package digest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"siafu/graph/durable"
	"siafu/graph/fault"
	"siafu/ranks/report/page"
)

// part is a table or figure.
type part struct {
	name  string
	title string
	paper string                                                 // what the paper reports of it
	write func(b *bench, ctx context.Context, t io.Writer) error // cells that end with tabs
}

// allParts are in the order of the paper; accuracy and links are our own.
func allParts() []part {
	return []part{
		{"table1", "accuracy and speed-up of an epoch", "up to 21.82 x as fast as DGL (abstract); accuracy above DGL's and LLCG's in all cases but GAT on ogbn-arxiv", (*bench).table1},
		{"figure3", "accuracy and loss over time", "DIGEST reaches more in the same time than LLCG and DGL on all four graphs", (*bench).figure3},
		{"figure4", "seconds an epoch", "DIGEST below LLCG and DGL", (*bench).figure4},
		{"figure5", "scaling out", "DIGEST scales best of the three", (*bench).figure5},
		{"figure6", "period of refreshing", "best accuracy over time at N = 10; N = 1 and 20 are worse", (*bench).figure6},
		{"figure7", "a straggler", "one of 8 workers stands still for 8 to 10 s; DIGEST-A far ahead of the synchronous ones", (*bench).figure7},
		{"figure8", "accuracy and loss of GAT over time", "as figure 3", (*bench).figure8},
		{"table4", "memory", "DIGEST takes the least of the four (of a GPU's memory)", (*bench).table4},
		{"figure9", "ghosts to own vertices", "58.43 % on ogbn-products, more on flickr and reddit", (*bench).figure9},
		{"figure10", "error of the gradient", "after fewer than 10 to 20 epochs close to the exact one", (*bench).figure10},
		{"figure11", "beside PipeGCN and GNNAutoScale, with a straggler", "DIGEST takes 24.13 % less time an epoch than PipeGCN; DIGEST-A 48.98 % less time to the target than PipeGCN and 19.12 % less than GNNAutoScale", (*bench).figure11},
		{"accuracy", "accuracy alone, without hosts of this machine", "", (*bench).accuracies},
		{"links", "which system over which link", "", (*bench).links},
	}
}

func chosenParts(names []string) ([]part, error) {
	all := allParts()
	if len(names) == 0 { // accuracy is in table1
		return slices.DeleteFunc(all, func(p part) bool { return p.name == "accuracy" }), nil
	}
	var list []part
	for _, n := range names {
		k := slices.IndexFunc(all, func(p part) bool { return p.name == n })
		if k < 0 {
			var known []string
			for _, p := range all {
				known = append(known, p.name)
			}
			return nil, fault.New(fault.Usage, op, "", "--only has %q", n).Then("choose from %s", strings.Join(known, ", "))
		}
		list = append(list, all[k])
	}
	return list, nil
}

// all writes the parts, and those that there are as a page too.
func (b *bench) all(ctx context.Context, w io.Writer) error {
	p := &page.Page{Title: "DIGEST's tables and figures", Lead: b.Origin}
	err := b.each(ctx, w, p)
	if b.HTML != "" {
		err = cmp.Or(err, p.Save(op, b.HTML))
	}
	return err
}

func (b *bench) each(ctx context.Context, w io.Writer, to *page.Page) error {
	for _, p := range b.parts {
		fmt.Fprintf(w, "\n## %s: %s\n", p.name, p.title)
		if p.paper != "" {
			fmt.Fprintf(w, "paper: %s\n", p.paper)
		}
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		var cells bytes.Buffer
		err := p.write(b, ctx, io.MultiWriter(t, &cells))
		t.Flush()
		to.Parts = append(to.Parts, p.onPage(cells.String()))
		if err != nil {
			return err
		}
	}
	if b.archive.left > 0 {
		line := fmt.Sprintf("%d trainings were not begun within --hours=%g; where a number would depend on them there is none. The same command goes on.", b.archive.left, b.Hours)
		fmt.Fprintf(w, "\n%s\n", line)
		to.Parts = append(to.Parts, page.Part{Title: "Not done", Text: line})
	}
	return nil
}

// onPage is the part as a page has it.
func (p part) onPage(cells string) page.Part {
	on := page.Part{Title: p.name + ": " + p.title}
	if p.paper != "" {
		on.Text = "The paper: " + p.paper + "."
	}
	on.Table, on.Lines = page.ReadTable(cells)
	return on
}

// cells are all combinations of graphs, ranks and the given networks.
func (b *bench) cells(models []string) []cell {
	var list []cell
	for _, g := range b.graphs {
		for _, n := range b.Ranks {
			for _, m := range models {
				list = append(list, cell{g, m, n})
			}
		}
	}
	return list
}

// head writes a line of column names.
func head(t io.Writer, columns ...string) { fmt.Fprintln(t, strings.Join(columns, "\t")+"\t") }

// number writes x with so many decimals, nothing for one that is not known.
func number(x float64, decimals int) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.IsInf(x, 1):
		return "never"
	}
	return fmt.Sprintf("%.*f", decimals, x)
}

func plusMinus(x []float64) string {
	mean, std := meanStd(x)
	if math.IsNaN(mean) {
		return "-"
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// table1 has every system in every cell.
func (b *bench) table1(ctx context.Context, t io.Writer) error {
	head(t, "graph", "network", "ranks", "system", "validation F1", "test F1", "s/epoch", "speed-up", "MB/epoch", "epochs to target", "seconds to target")
	for _, c := range b.cells(b.Models) {
		times, err := b.times(ctx, c, systemsOf(b.systems, c.model), b.rates[0])
		if err != nil {
			return err
		}
		base := perEpoch(times[b.systems[0].Name], seconds)
		target := math.NaN()
		for k, s := range systemsOf(b.systems, c.model) {
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			if k == 0 {
				target = b.target(list)
			}
			each := perEpoch(times[s.Name], seconds)
			epochs, until := reaching(list, s, target, each)
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", c.graph.Name, c.model, c.ranks, s.Name, plusMinus(best(list)), plusMinus(tests(list)),
				number(each, 4), number(base/each, 2), number(perEpoch(times[s.Name], sent)/1e6, 2), number(epochs, 0), number(until, 2))
		}
		fmt.Fprintf(t, "\t\t\ttarget\t%s\n", number(target, 2))
	}
	return nil
}

// accuracies has what table 1 knows without links: systems whose accuracy depends on
// nobody's time.
func (b *bench) accuracies(ctx context.Context, t io.Writer) error {
	head(t, "graph", "network", "ranks", "system", "validation F1", "test F1", "MB/epoch")
	for _, c := range b.cells(b.Models) {
		for _, s := range systemsOf(b.systems, c.model) {
			if s.Timely {
				continue
			}
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t\n", c.graph.Name, c.model, c.ranks, s.Name, plusMinus(best(list)), plusMinus(tests(list)),
				number(perEpoch(list, sent)/1e6, 2))
		}
	}
	return nil
}

// target is the validation accuracy that systems are to reach: half a point below the
// mean of the best ones of exact training.
func (b *bench) target(exact []*Result) float64 {
	mean, _ := meanStd(best(exact))
	return mean - 0.5
}

func tests(list []*Result) []float64 {
	x := make([]float64, len(list))
	for i, r := range list {
		x[i] = 100 * r.Summary.TestAccAtBestVal
	}
	return x
}

func (b *bench) figure3(ctx context.Context, t io.Writer) error {
	return b.curves(ctx, t, "figure3", b.Models[0])
}

func (b *bench) figure8(ctx context.Context, t io.Writer) error {
	return b.curves(ctx, t, "figure8", "gat")
}

// shares of the time that exact training takes are the columns of curves.
var shares = []float64{0.05, 0.1, 0.2, 0.5, 1}

// curves writes accuracy and loss at shares of exact training's time, and all points
// to a CSV file in the work folder.
func (b *bench) curves(ctx context.Context, t io.Writer, name, model string) error {
	var csv strings.Builder
	csv.WriteString("graph,ranks,system,seed,epoch,seconds,loss,validation\n")
	columns := []string{"graph", "ranks", "system"}
	for _, x := range shares {
		columns = append(columns, fmt.Sprintf("F1, loss at %g %%", 100*x))
	}
	head(t, columns...)
	for _, c := range b.cells([]string{model}) {
		times, err := b.times(ctx, c, systemsOf(b.systems, c.model), b.rates[0])
		if err != nil {
			return err
		}
		whole := perEpoch(times[b.systems[0].Name], seconds) * float64(b.Epochs)
		for _, s := range systemsOf(b.systems, c.model) {
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			each := perEpoch(times[s.Name], seconds)
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

// clock is the seconds after each epoch of a training.
func clock(r *Result, s System, each float64) []float64 {
	x, sum := make([]float64, len(r.Epochs)), 0.0
	for k, e := range r.Epochs {
		if sum += each; s.Timely {
			sum += e.Seconds - each
		}
		x[k] = sum
	}
	return x
}

// at is the mean accuracy and loss of trainings after some seconds.
func at(list []*Result, s System, each, when float64) string {
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
	a, _ := meanStd(acc)
	l, _ := meanStd(loss)
	return number(a, 2) + ", " + number(l, 3)
}

func writeCurve(w io.Writer, label string, r *Result, s System, each float64) {
	for k, sec := range clock(r, s, each) {
		e := r.Epochs[k]
		val := ""
		if e.ValAcc != nil {
			val = fmt.Sprintf("%.5f", *e.ValAcc)
		}
		fmt.Fprintf(w, "%s,%d,%.5f,%.6f,%s\n", label, e.Epoch, sec, e.Loss, val)
	}
}
