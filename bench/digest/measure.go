package digest

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/bench/trials"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
)

type bench struct {
	Options
	systems []System
	graphs  []trials.Graph
	rates   []float64
}

// cells returns all combinations of graphs, ranks and the given networks.
func (b *bench) cells(models ...string) []trials.Setting {
	var list []trials.Setting
	for _, g := range b.graphs {
		for _, n := range b.Ranks {
			for _, m := range models {
				list = append(list, trials.Setting{Graph: g, Model: m, Ranks: n})
			}
		}
	}
	return list
}

// flags returns the flags of a system's trainings in a setting.
func (b *bench) flags(c trials.Setting, s System, more ...string) []string {
	list := append([]string{"--model", c.Model, "--servers", strconv.Itoa(s.Servers), "--partitioner", b.Partitioner,
		"--checkpoint-every", "off"}, b.Train...)
	list = append(list, s.Flags...)
	if s.UnitRows && model.KindOf(c.Model).TakesRowNorms() {
		list = append(list, "--norm", "l2")
	}
	return append(list, more...)
}

// only returns the selected systems with these names.
func (b *bench) only(names ...string) []System {
	return slices.DeleteFunc(slices.Clone(b.systems), func(s System) bool { return !slices.Contains(names, s.Name) })
}

// accuracy returns the accuracy trainings of a system, one per seed. The list is shorter after
// the time limit. A Timely system uses a link of the rate.
func (b *bench) accuracy(t *trials.Sheet, c trials.Setting, s System, rate float64) (list []*trials.Result) {
	for seed := range b.Seeds {
		one := trials.Trial{Data: c.Graph.Data, Ranks: c.Ranks + s.Servers, Flags: b.flags(c, s,
			"--epochs", strconv.Itoa(b.Epochs), "--eval-every", "1", "--seed", strconv.Itoa(seed+1))}
		if s.Timely {
			one.Rate = rate
		}
		if r := t.Get(one); r != nil {
			list = append(list, r)
		}
	}
	return list
}

// times returns the timed trainings of each system over a link, by system name. Repetitions of
// the systems are interleaved. For a Timely system, it returns the accuracy trainings.
func (b *bench) times(t *trials.Sheet, c trials.Setting, systems []System, rate float64, more ...string) map[string][]*trials.Result {
	all := map[string][]*trials.Result{}
	for repetition := range b.Turns {
		for _, s := range systems {
			if s.Timely {
				all[s.Name] = b.accuracy(t, c, s, rate)
				continue
			}
			epochs := strconv.Itoa(max(b.Timed, s.Period+1))
			if r := t.Get(trials.Trial{Data: c.Graph.Data, Ranks: c.Ranks + s.Servers, Rate: rate, Turn: repetition,
				Flags: b.flags(c, s, append([]string{"--epochs", epochs, "--eval-every", "0"}, more...)...)}); r != nil {
				all[s.Name] = append(all[s.Name], r)
			}
		}
	}
	return all
}

// seconds returns the seconds of an epoch of timed trainings.
func seconds(turns []*trials.Result) float64 { return trials.PerEpoch(turns, trials.Seconds) }

func (b *bench) target(t *trials.Sheet, c trials.Setting) float64 {
	return trials.Target(b.accuracy(t, c, b.systems[0], b.rates[0]))
}

// reaching returns the number of epochs, and seconds, after which the trainings' mean best
// validation accuracy reaches target. It returns +Inf if never reached, NaN without trainings.
// An epoch takes epochSeconds, except for a Timely system, whose measured epoch times are added.
func reaching(list []*trials.Result, s System, target, epochSeconds float64) (epochs, seconds float64) {
	epochs = trials.Reaching(list, target)
	switch {
	case math.IsInf(epochs, 1) || math.IsNaN(epochs):
		return epochs, epochs
	case !s.Timely:
		return epochs, epochs * epochSeconds
	}
	for _, r := range list {
		for _, e := range r.Epochs[:int(epochs)] {
			seconds += e.Seconds / float64(len(list))
		}
	}
	return epochs, seconds
}

// table is a part with a row for each system in each setting.
type table struct {
	columns string   // names in columns, separated by commas
	network string   // the only one, "all", or "": the first one
	names   []string // of systems; nil: all
	systems []System // instead of selected ones
	timed   bool     // rows have timed trainings; else Timely systems are omitted
	delay   []string // flags of a straggler

	more  []string             // names of further columns
	cells func(*row) []string  // their cells
	end   func(trials.Setting) // called after the rows of a setting
}

// row is a system in a setting.
type row struct {
	trials.Setting
	System
	first *row // of the setting
	turns []*trials.Result
	timed bool
	b     *bench
	t     *trials.Sheet
}

// of returns the function that writes a table.
func (b *bench) of(p table) func(*trials.Sheet) { return func(t *trials.Sheet) { b.write(t, p) } }

func (b *bench) write(t *trials.Sheet, p table) {
	names := strings.Split(p.columns, ", ")
	t.Row(append(names, p.more...)...)
	models := []string{p.network}
	switch p.network {
	case "":
		models = b.Models[:1]
	case "all":
		models = b.Models
	}
	for _, c := range b.cells(models...) {
		systems := b.systemsOf(p, c.Model)
		var times map[string][]*trials.Result
		if p.timed {
			times = b.times(t, c, systems, b.rates[0], p.delay...)
		}
		var first *row
		for _, s := range systems {
			r := &row{Setting: c, System: s, first: first, turns: times[s.Name], timed: p.timed, b: b, t: t}
			if first == nil {
				first, r.first = r, r
			}
			var cells []string
			for _, name := range names {
				cells = append(cells, columns[name](r))
			}
			if p.cells != nil {
				cells = append(cells, p.cells(r)...)
			}
			t.Row(cells...)
		}
		if p.end != nil {
			p.end(c)
		}
	}
}

// systemsOf returns the systems of a table that can train a network.
func (b *bench) systemsOf(p table, model string) (list []System) {
	all := p.systems
	switch {
	case p.names != nil:
		all = b.only(p.names...)
	case all == nil:
		all = b.systems
	}
	for _, s := range all {
		if len(s.Networks) > 0 && !slices.Contains(s.Networks, model) || s.Timely && !p.timed {
			continue
		}
		if s.Timely {
			s.Flags = append(slices.Clone(s.Flags), p.delay...)
		}
		list = append(list, s)
	}
	return list
}

// columns returns the cells of rows, by the names of their columns.
var columns = map[string]func(*row) string{
	"graph":         func(r *row) string { return r.Graph.Name },
	"network":       func(r *row) string { return r.Model },
	"ranks":         func(r *row) string { return strconv.Itoa(r.Ranks) },
	"system":        func(r *row) string { return r.Name },
	"partitioner":   func(r *row) string { return r.b.Partitioner },
	"validation F1": func(r *row) string { return trials.PlusMinus(trials.Best(r.list())) },
	"test F1":       func(r *row) string { return trials.PlusMinus(trials.Tested(r.list())) },
	"s/epoch":       func(r *row) string { return trials.Number(seconds(r.turns), 4) },
	"speed-up":      func(r *row) string { return trials.Number(seconds(r.first.turns)/seconds(r.turns), 2) },
	"MB/epoch": func(r *row) string {
		turns := r.turns
		if !r.timed {
			turns = r.list()
		}
		return trials.Number(trials.PerEpoch(turns, trials.Sent)/1e6, 2)
	},
	"epochs to target": func(r *row) string {
		epochs, _ := r.reaching()
		return trials.Number(epochs, 0)
	},
	"seconds to target": func(r *row) string {
		_, until := r.reaching()
		return trials.Number(until, 2)
	},
	"peak MB of a rank": func(r *row) string { return trials.Number(r.peak(trials.PeakBytes)/1e6, 1) },
	"to exact-wait":     func(r *row) string { return trials.Number(r.peak(trials.PeakBytes)/r.first.peak(trials.PeakBytes), 2) },
	"arrays MB":         func(r *row) string { return trials.Number(r.peak(trials.ArrayBytes)/1e6, 1) },
	"ghosts":            func(r *row) string { return trials.Number(r.total(ghosts), 0) },
	"own vertices":      func(r *row) string { return trials.Number(r.total(ownVertices), 0) },
	"ratio":             func(r *row) string { return trials.Number(100*r.total(ghosts)/r.total(ownVertices), 2) + " %" },
}

func (r *row) list() []*trials.Result { return r.b.accuracy(r.t, r.Setting, r.System, r.b.rates[0]) }

// reaching returns the number of epochs, and seconds, to the target.
func (r *row) reaching() (epochs, until float64) {
	return reaching(r.list(), r.System, r.b.target(r.t, r.Setting), seconds(r.turns))
}

func ghosts(r runfolder.RankReport) int64      { return r.Ghosts }
func ownVertices(r runfolder.RankReport) int64 { return r.Vertices }

// peak returns the bytes of the largest graph rank in the first timed training, NaN without one.
func (r *row) peak(of func(runfolder.RankReport) int64) float64 {
	if len(r.turns) == 0 {
		return math.NaN()
	}
	return trials.Largest(r.turns[0], of)
}

// total returns the sum over the graph ranks of the first timed training, NaN without one.
func (r *row) total(of func(runfolder.RankReport) int64) float64 {
	if len(r.turns) == 0 {
		return math.NaN()
	}
	sum := int64(0)
	for _, one := range r.turns[0].Summary.PerRank {
		if one.Role == "graph" {
			sum += of(one)
		}
	}
	return float64(sum)
}
