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

// curves returns the systems of figures 3 and 4.
func (b *bench) curves() []trials.System {
	return append(systems("exact"), b.predicted(false, stale()...)...)
}

func (b *bench) figure3(t *trials.Sheet) {
	picture, end := drawn(t, "figure3", "epoch", "test F1, %")
	b.write(t, trials.Comparison{Settings: b.Settings(b.Models, b.Ranks[:1], ""), Systems: b.curves(), End: end,
		More: trials.Columns("F1 at %g %% of epochs|%%.2f", percents),
		Cells: func(r *trials.Row) (cells []any) {
			f1, epochs := meanByEpoch(r.Accuracy(), func(e runfolder.Epoch) *float64 { return e.TestAcc }), []float64(nil)
			for k := range f1 {
				f1[k], epochs = 100*f1[k], append(epochs, float64(k+1))
			}
			addLine(picture, r.System, epochs, f1)
			for _, x := range percents {
				cells = append(cells, after(f1, x/100*float64(b.Epochs)))
			}
			return cells
		}})
}

func (b *bench) figure4(t *trials.Sheet) {
	var csv strings.Builder
	csv.WriteString("graph,ranks,system,prediction,epoch,seconds,loss\n")
	picture, end := drawn(t, "figure4", "seconds", "training loss")
	p := trials.Comparison{Settings: b.Settings(b.Models[:1], b.Ranks[:1], b.Rates[0]), Systems: b.curves(), Timed: true, End: end,
		More: trials.Columns("loss at %g %% of exact's time|%%.4f", percents)}
	for _, rate := range b.Rates {
		p.More = append(p.More, "s/epoch, "+rate+"|%.4f", "s to target|%.2f")
	}
	p.Cells = func(r *trials.Row) (cells []any) {
		list, x := r.Accuracy(), r.Seconds()
		loss, clock := meanByEpoch(list, func(e runfolder.Epoch) *float64 { return &e.Loss }), []float64(nil)
		for k := range loss {
			clock = append(clock, float64(k+1)*x)
			fmt.Fprintf(&csv, "%s,%d,%s,%s,%d,%.5f,%.6f\n", r.Graph.Name, r.Ranks, r.Name, r.Kind, k+1, clock[k], loss[k])
		}
		if !math.IsNaN(x) {
			addLine(picture, r.System, clock, loss)
		}
		for _, f := range percents {
			cells = append(cells, after(loss, f/100*r.First.Seconds()*float64(b.Epochs)/x))
		}
		target := b.Target(t, r.Setting)
		for _, rate := range b.Rates {
			c := r.Setting
			c.Rate = rate
			each := trials.PerEpoch(r.At(c), trials.Seconds)
			cells = append(cells, each, trials.Reaching(list, target)*each)
		}
		return cells
	}
	b.write(t, p)
	t.Points(filepath.Join(b.Work, "figure4.csv"), csv.String())
}

func (b *bench) figure5a(t *trials.Sheet) {
	periods := []int{1, 5, 10, 20}
	p := trials.Comparison{Systems: slices.DeleteFunc(b.predicted(false, systems("DIGEST", "PipeGCN")...),
		func(s trials.System) bool { return s.Kind == "" })}
	for _, n := range periods {
		p.More = append(p.More, fmt.Sprintf("ΔT = %d, s/epoch|%%.5f", n), "of the epoch, %|%.2f")
	}
	p.Cells = func(r *trials.Row) (cells []any) {
		for _, n := range periods {
			s := r.System
			s.Period = slices.Max(periods)
			if learns(s) {
				s = s.With(s.Kind, "--predict", "every="+strconv.Itoa(n))
			}
			turns := b.Times(t, r.Setting, s)[0]
			predicting := trials.PerEpoch(turns, predictSeconds)
			cells = append(cells, predicting, 100*predicting/trials.PerEpoch(turns, trials.Seconds))
		}
		return cells
	}
	b.write(t, p)
}

func predictSeconds(e runfolder.Epoch) float64 { return e.PredictSeconds }

func (b *bench) figure5b(t *trials.Sheet) {
	b.write(t, trials.Comparison{Systems: b.predicted(true, systems("GNNAutoScale")...),
		More: []string{"validation F1", "test F1", "mean error", "of stored"},
		Cells: func(r *trials.Row) []any {
			list := r.Accuracy()
			used, stored := errorsOf(b.Staleness(t, r.Setting, r.System, deep...), 2, math.MaxInt)
			return []any{trials.PlusMinus(trials.Best(list)), trials.PlusMinus(trials.Tested(list)), join(used), join(ratios(used, stored))}
		}})
}

func (b *bench) figure5c(t *trials.Sheet) {
	p := trials.Comparison{More: []string{"validation F1", "test F1", "s/epoch of predictions|%.5f"}}
	for _, s := range b.predicted(false, systems("DIGEST")...) {
		options := []string{"", "--predict rows=512", "--predict rows=8192"}
		switch {
		case s.Kind == "" || s.Kind == paperAlgorithm:
			continue
		case learns(s):
			options = append(options, "--predict window=2", "--predict window=8")
		}
		for _, more := range options {
			p.Systems = append(p.Systems, s.With(strings.TrimSpace(s.Kind+" "+more), strings.Fields(more)...))
		}
	}
	p.Cells = func(r *trials.Row) []any {
		list := r.Accuracy()
		return []any{trials.PlusMinus(trials.Best(list)), trials.PlusMinus(trials.Tested(list)), trials.PerEpoch(list, predictSeconds)}
	}
	b.write(t, p)
}

// deep are the flags of three layers without dropout.
var deep = []string{"--layers", "3", "--dropout", "0", "--input-dropout", "0"}

func (b *bench) theorem(t *trials.Sheet) {
	picture, end := drawn(t, "theorem", "ln T", "ln of the mean squared gradient")
	exact := trials.System{Name: "exact", Flags: []string{"--refresh", "every:1"}} // every:1 is exact and can be measured
	b.write(t, trials.Comparison{Systems: append([]trials.System{exact}, b.predicted(false, systems("DIGEST")...)...), End: end,
		More: []string{"mean squared gradient|%.8f", "slope|%.3f", "paper's slope"},
		Cells: func(r *trials.Row) []any {
			x, y, slope := meanSquares(b.Staleness(t, r.Setting, r.System, deep...))
			addLine(picture, r.System, x, y)
			last := math.NaN()
			if len(y) > 0 {
				last = math.Exp(y[len(y)-1])
			}
			return []any{last, slope, "-0.667"}
		}})
}
