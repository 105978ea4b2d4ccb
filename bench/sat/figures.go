package sat

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/bench/trials"
	"siafu/ranks/runfolder"
)

func (b *bench) figure3(t *trials.Sheet) {
	picture, end := drawn(t, "figure3", "epoch", "test F1, %")
	p := table{models: b.Models, methods: append(systems("exact"), b.predicted(false, stale()...)...), end: end,
		columns: trials.Columns("F1 at %g %% of epochs", percents)}
	p.cells = func(c trials.Setting, m method) (cells []string) {
		f1, epochs := course(b.accuracy(t, c, m), func(e runfolder.Epoch) *float64 { return e.TestAcc }), []float64(nil)
		for k := range f1 {
			f1[k], epochs = 100*f1[k], append(epochs, float64(k+1))
		}
		b.curve(picture, m, epochs, f1)
		for _, x := range percents {
			cells = append(cells, trials.Number(after(f1, x/100*float64(b.Epochs)), 2))
		}
		return cells
	}
	b.write(t, p)
}

func (b *bench) figure4(t *trials.Sheet) {
	var csv strings.Builder
	csv.WriteString("graph,ranks,system,prediction,epoch,seconds,loss\n")
	picture, end := drawn(t, "figure4", "seconds", "training loss")
	methods := append(systems("exact"), b.predicted(false, stale()...)...)
	each, whole, target := b.seconds(t, methods), 0.0, 0.0
	p := table{methods: methods, end: end, columns: trials.Columns("loss at %g %% of exact's time", percents)}
	for _, rate := range b.Rates {
		p.columns = append(p.columns, "s/epoch, "+rate, "s to target")
	}
	p.cells = func(c trials.Setting, m method) (cells []string) {
		list, x := b.accuracy(t, c, m), each(c, m, b.rates[0])
		if m.system == methods[0].system {
			whole, target = x*float64(b.Epochs), trials.Target(list)
		}
		loss, clock := course(list, func(e runfolder.Epoch) *float64 { return &e.Loss }), []float64(nil)
		for k := range loss {
			clock = append(clock, float64(k+1)*x)
			fmt.Fprintf(&csv, "%s,%d,%s,%s,%d,%.5f,%.6f\n", c.Graph.Name, c.Ranks, m.system, m.kind, k+1, clock[k], loss[k])
		}
		if !math.IsNaN(x) {
			b.curve(picture, m, clock, loss)
		}
		for _, f := range percents {
			cells = append(cells, trials.Number(after(loss, f/100*whole/x), 4))
		}
		for _, rate := range b.rates {
			x := each(c, m, rate)
			cells = append(cells, trials.Number(x, 4), trials.Number(trials.Reaching(list, target)*x, 2))
		}
		return cells
	}
	b.write(t, p)
	t.Points(filepath.Join(b.Work, "figure4.csv"), csv.String())
}

func (b *bench) figure5a(t *trials.Sheet) {
	periods := []int{1, 5, 10, 20}
	predicts := slices.DeleteFunc(b.predicted(false, systems("DIGEST", "PipeGCN")...), func(m method) bool { return m.kind == "" })
	p := table{methods: predicts}
	for _, n := range periods {
		p.columns = append(p.columns, fmt.Sprintf("ΔT = %d, s/epoch", n), "of the epoch, %")
	}
	p.cells = func(c trials.Setting, m method) (cells []string) {
		for _, n := range periods {
			one := m
			if m.learns() {
				one = m.with(m.kind, "--predict-every", strconv.Itoa(n))
			}
			r := b.timed(t, c, rateless, max(b.Timed, slices.Max(periods)+1), one)[0]
			predicting := trials.PerEpoch(r, func(e runfolder.Epoch) float64 { return e.PredictSeconds })
			cells = append(cells, trials.Number(predicting, 5), trials.Number(100*predicting/trials.PerEpoch(r, trials.Seconds), 2))
		}
		return cells
	}
	b.write(t, p)
}

func (b *bench) figure5b(t *trials.Sheet) {
	b.write(t, table{methods: b.predicted(true, systems("GNNAutoScale")...),
		columns: []string{"validation F1", "test F1", "mean error", "of stored"},
		cells: func(c trials.Setting, m method) []string {
			list := b.accuracy(t, c, m)
			used, stored := errorsOf(b.stalest(t, c, m, "--layers", "3", "--dropout", "0", "--input-dropout", "0"), 2, math.MaxInt)
			return []string{trials.PlusMinus(trials.Best(list)), trials.PlusMinus(trials.Tested(list)),
				join(used), join(ratios(used, stored))}
		}})
}

func (b *bench) figure5c(t *trials.Sheet) {
	var methods []method
	for _, m := range b.predicted(false, systems("DIGEST")...) {
		options := []string{"", "--predict-rows 512", "--predict-rows 8192"}
		switch {
		case m.kind == "" || m.kind == letter:
			continue
		case m.learns():
			options = append(options, "--predict-window 2", "--predict-window 8")
		}
		for _, more := range options {
			methods = append(methods, m.with(strings.TrimSpace(m.kind+" "+more), strings.Fields(more)...))
		}
	}
	b.write(t, table{methods: methods, columns: []string{"validation F1", "test F1", "s/epoch of predictions"},
		cells: func(c trials.Setting, m method) []string {
			list := b.accuracy(t, c, m)
			seconds := trials.PerEpoch(list, func(e runfolder.Epoch) float64 { return e.PredictSeconds })
			return []string{trials.PlusMinus(trials.Best(list)), trials.PlusMinus(trials.Tested(list)), trials.Number(seconds, 5)}
		}})
}

func (b *bench) theorem(t *trials.Sheet) {
	picture, end := drawn(t, "theorem", "ln T", "ln of the mean squared gradient")
	exact := method{system: "exact", flags: []string{"--refresh", "every:1"}} // every:1 is exact and can be measured
	b.write(t, table{methods: append([]method{exact}, b.predicted(false, systems("DIGEST")...)...), end: end,
		columns: []string{"mean squared gradient", "slope", "paper's slope"}, cells: func(c trials.Setting, m method) []string {
			x, y, slope := meanSquares(b.stalest(t, c, m, "--layers", "3", "--dropout", "0", "--input-dropout", "0"))
			b.curve(picture, m, x, y)
			last := math.NaN()
			if len(y) > 0 {
				last = math.Exp(y[len(y)-1])
			}
			return []string{trials.Number(last, 8), trials.Number(slope, 3), "-0.667"}
		}})
}
