package trials

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/plan"
	"siafu/ranks/runfolder"
)

// Study has the options and the trainings of a comparison of systems on graphs.
type Study struct {
	Data   []string `placeholder:"DIR" help:"Dataset folders. Empty: synthetic graphs with the statistics of Flickr, Reddit, ogbn-arxiv and ogbn-products, generated at --scale in --work."`
	Ranks  []int    `default:"${ranks=4}" help:"Numbers of graph ranks, each rank on its own emulated host where links are limited. ${single}"`
	Models []string `default:"gcn,gat" help:"Networks to train. Parts that do not compare networks use the first one, or those of the paper."`
	Rates  []string `default:"200mbit,1gbit,10gbit" help:"Link rates of the hosts. Parts that do not compare links use the first one."`
	Scale  float64  `default:"0.05" help:"Factor for vertices and edges of synthetic graphs."`
	Options

	Reference System              `kong:"-"` // its accuracy is the target of others
	Graphs    []Graph             `kong:"-"`
	Wrap      func(Runner) Runner `kong:"-"` // nil: trials are run unchanged
}

// Open checks the options, completes a book like Options.Open, and makes missing synthetic graphs.
func (b *Study) Open(op string, book Book) (*Book, error) {
	if len(b.Ranks) == 0 || slices.Min(b.Ranks) < 2 || len(b.Models) == 0 || len(b.Rates) == 0 {
		return nil, fault.New(fault.Usage, op, "", "--ranks=%v --models=%v --rates=%v", b.Ranks, b.Models, b.Rates).
			Then("set at least one network and rate, and 2 or more ranks")
	}
	if err := CheckRates(b.Rates); err != nil {
		return nil, err
	}
	opened, err := b.Options.Open(op, book)
	if err == nil {
		b.Graphs, err = GivenOr(b.Data, b.Work, b.Scale, "flickr", "reddit-small", "ogbn-arxiv", "ogbn-products")
	}
	return opened, err
}

// CheckRates returns a fault if a text is no link rate such as 1gbit.
func CheckRates(texts []string) error {
	for _, text := range texts {
		if _, err := plan.Bandwidth(text); err != nil {
			return err
		}
	}
	return nil
}

// System is a published method of training.
type System struct {
	Name  string
	Kind  string   // of its predictions; "": none
	Flags []string // of train, after those of the study
	Timed []string // of train, in trainings whose time counts
	// Timely means that accuracy depends on ranks' speeds, or time on the epoch, so that whole
	// runs over the link are needed.
	Timely  bool
	Servers int // required servers
	Period  int // epochs of a complete cycle; 0: at most 10
	// UnitRows adds --norm l2, for networks that take it.
	UnitRows bool
	// Networks lists the networks that it trains; empty: all.
	Networks []string
}

// With returns the system with a kind of prediction and further flags.
func (s System) With(kind string, flags ...string) System {
	s.Kind, s.Flags = kind, slices.Concat(s.Flags, flags)
	return s
}

// Trains reports whether the system trains a network.
func (s System) Trains(network string) bool {
	return len(s.Networks) == 0 || slices.Contains(s.Networks, network)
}

// Setting is a graph and network on a number of graph ranks, and the rate of their links; "": in one
// process.
type Setting struct {
	Graph Graph
	Model string
	Ranks int
	Rate  string
}

// Settings returns all combinations of the study's graphs with networks, numbers of ranks and rates.
func (b *Study) Settings(models []string, ranks []int, rates ...string) (list []Setting) {
	for _, rate := range rates {
		for _, g := range b.Graphs {
			for _, m := range models {
				for _, n := range ranks {
					list = append(list, Setting{g, m, n, rate})
				}
			}
		}
	}
	return list
}

// Flags returns the flags of a system's trainings in a setting.
func (b *Study) Flags(c Setting, s System, more ...string) []string {
	list := slices.Concat([]string{"--model", c.Model, "--servers", strconv.Itoa(s.Servers), "--partitioner", b.Partitioner,
		"--checkpoint-every", "off"}, b.Train, s.Flags)
	if s.UnitRows && model.KindOf(c.Model).TakesRowNorms() {
		list = append(list, "--norm", "l2")
	}
	return append(list, more...)
}

// Get returns the result of a training, nil without one. If train refuses the flags, it returns the
// refusal, which is a line below the table.
func (b *Study) Get(t *Sheet, c Setting, s System, turn int, more ...string) (*Result, error) {
	one := Trial{Data: c.Graph.Data, Ranks: c.Ranks + s.Servers, Turn: turn, Flags: b.Flags(c, s, more...)}
	if c.Rate != "" {
		one.Rate, _ = plan.Bandwidth(c.Rate) // checked by Open
	}
	by := t.Runner
	if b.Wrap != nil {
		by = b.Wrap(by)
	}
	r, refusal := t.Try(fmt.Sprint(one.Data, one.Ranks, one.Flags), one, by, fault.Usage)
	if refusal != nil {
		t.Note("-: " + strings.TrimPrefix(strings.ReplaceAll(refusal.Error(), "\n", " "), t.op+": siafu: "))
	}
	return r, refusal
}

// Accuracy returns the accuracy trainings of a system, one per seed. The list is shorter after the
// time limit. Only a Timely system uses the link.
func (b *Study) Accuracy(t *Sheet, c Setting, s System, more ...string) (list []*Result) {
	if s.Timely {
		more = append(more, s.Timed...)
	} else {
		c.Rate = ""
	}
	for seed := range b.Seeds {
		r, refusal := b.Get(t, c, s, 0,
			slices.Concat(more, []string{"--epochs", strconv.Itoa(b.Epochs), "--eval-every", "1", "--seed", strconv.Itoa(seed + 1)})...)
		if refusal != nil {
			return nil
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list
}

// Times returns the timed trainings of each system, none of systems that do not train the network.
// Repetitions of the systems are interleaved. For a Timely system, it returns the accuracy trainings.
func (b *Study) Times(t *Sheet, c Setting, systems ...System) [][]*Result {
	all := make([][]*Result, len(systems))
	for turn := range b.Turns {
		for k, s := range systems {
			switch {
			case !s.Trains(c.Model):
				continue
			case s.Timely:
				all[k] = b.Accuracy(t, c, s)
				continue
			}
			epochs := strconv.Itoa(max(b.Options.Timed, s.Period+1))
			if r, _ := b.Get(t, c, s, turn, append([]string{"--epochs", epochs, "--eval-every", "0"}, s.Timed...)...); r != nil {
				all[k] = append(all[k], r)
			}
		}
	}
	return all
}

// MeasuredEvery is the interval of staleness measurements in epochs. It must not divide the periods of
// refreshes.
const MeasuredEvery = 3

// Staleness returns the epochs of a training with measured staleness in one process, nil without one.
func (b *Study) Staleness(t *Sheet, c Setting, s System, more ...string) []runfolder.Epoch {
	c.Rate = ""
	r, _ := b.Get(t, c, s, 0, append(more, "--epochs", strconv.Itoa(b.Epochs), "--eval-every", "0",
		"--measure-staleness", strconv.Itoa(MeasuredEvery))...)
	if r == nil {
		return nil
	}
	return r.Epochs
}

// Target returns the validation accuracy in percent that systems must reach in a setting.
func (b *Study) Target(t *Sheet, c Setting) float64 { return Target(b.Accuracy(t, c, b.Reference)) }

// Comparison is a table with a row for each system in each setting.
type Comparison struct {
	Columns  string // names of columns of the package, separated by commas
	Settings []Setting
	Systems  []System
	Timed    bool // rows have timed trainings; else Timely systems are omitted

	More  []string         // further columns, of package table
	Cells func(*Row) []any // their cells
	End   func(Setting)    // called after the rows of a setting
}

// Row is a system in a setting.
type Row struct {
	Setting
	System
	First *Row      // of the setting
	Turns []*Result // timed trainings

	b       *Study
	t       *Sheet
	systems []System // of the setting's rows
	index   int      // of System
	timed   bool
}

// Write writes a table.
func (b *Study) Write(t *Sheet, p Comparison) {
	names := strings.Split(p.Columns, ", ")
	var head []string
	for _, name := range names {
		head = append(head, name+columns[name].format)
	}
	t.Columns(append(head, p.More...)...)
	for _, c := range p.Settings {
		systems := slices.DeleteFunc(slices.Clone(p.Systems), func(s System) bool {
			return !s.Trains(c.Model) || s.Timely && !p.Timed
		})
		turns := make([][]*Result, len(systems))
		if p.Timed {
			turns = b.Times(t, c, systems...)
		}
		var first *Row
		for k, s := range systems {
			r := &Row{Setting: c, System: s, First: first, Turns: turns[k], b: b, t: t, systems: systems, index: k, timed: p.Timed}
			if first == nil {
				first, r.First = r, r
			}
			var cells []any
			for _, name := range names {
				cells = append(cells, columns[name].cell(r))
			}
			if p.Cells != nil {
				cells = append(cells, p.Cells(r)...)
			}
			t.Add(cells...)
		}
		if p.End != nil {
			p.End(c)
		}
	}
}

// columns has the formats and the cells of columns by their names.
var columns = map[string]struct {
	format string
	cell   func(*Row) any
}{
	"graph":         {"", func(r *Row) any { return r.Graph.Name }},
	"network":       {"", func(r *Row) any { return r.Model }},
	"ranks":         {"", func(r *Row) any { return r.Ranks }},
	"hosts":         {"", func(r *Row) any { return r.Ranks }},
	"link":          {"", func(r *Row) any { return r.Rate }},
	"partitioner":   {"", func(r *Row) any { return r.b.Partitioner }},
	"system":        {"", func(r *Row) any { return r.Name }},
	"handling":      {"", func(r *Row) any { return r.Name }},
	"prediction":    {"", func(r *Row) any { return cmp.Or(r.Kind, "none") }},
	"validation F1": {"", func(r *Row) any { return PlusMinus(Best(r.Accuracy())) }},
	"test F1":       {"", func(r *Row) any { return PlusMinus(Tested(r.Accuracy())) }},
	"s/epoch":       {"|%.4f", func(r *Row) any { return r.Seconds() }},
	"speed-up":      {"|%.2f", func(r *Row) any { return r.First.Seconds() / r.Seconds() }},
	"MB/epoch": {"|%.2f", func(r *Row) any {
		turns := r.Turns
		if !r.timed {
			turns = r.Accuracy()
		}
		return PerEpoch(turns, Sent) / 1e6
	}},
	"epochs to target": {"|%.0f", func(r *Row) any {
		epochs, _ := r.toTarget()
		return epochs
	}},
	"seconds to target": {"|%.2f", func(r *Row) any {
		_, until := r.toTarget()
		return until
	}},
	"peak MB of a rank": {"|%.1f", func(r *Row) any { return r.peak(PeakBytes) / 1e6 }},
	"to exact-wait":     {"|%.2f", func(r *Row) any { return r.peak(PeakBytes) / r.First.peak(PeakBytes) }},
	"arrays MB":         {"|%.1f", func(r *Row) any { return r.peak(ArrayBytes) / 1e6 }},
	"ghosts":            {"|%.0f", func(r *Row) any { return r.Total(Ghosts) }},
	"own vertices":      {"|%.0f", func(r *Row) any { return r.Total(OwnVertices) }},
}

// Accuracy returns the accuracy trainings of the row.
func (r *Row) Accuracy() []*Result { return r.b.Accuracy(r.t, r.Setting, r.System) }

// At returns timed trainings like Turns, in another setting.
func (r *Row) At(c Setting) []*Result { return r.b.Times(r.t, c, r.systems...)[r.index] }

// Seconds returns the seconds of an epoch of the timed trainings.
func (r *Row) Seconds() float64 { return PerEpoch(r.Turns, Seconds) }

// toTarget returns the number of epochs, and seconds, to the target.
func (r *Row) toTarget() (epochs, seconds float64) {
	return r.Reaching(r.Accuracy(), r.b.Target(r.t, r.Setting), r.Seconds())
}

// Reaching returns the number of epochs, and seconds, after which the trainings' mean best
// validation accuracy reaches target. It returns +Inf if never reached, NaN without trainings. An epoch
// takes epochSeconds, except for a Timely system, whose measured epoch times are added.
func (s System) Reaching(list []*Result, target, epochSeconds float64) (epochs, seconds float64) {
	epochs = Reaching(list, target)
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

// peak returns the bytes of the largest graph rank in the first timed training, NaN without one.
func (r *Row) peak(of func(runfolder.RankReport) int64) float64 {
	if len(r.Turns) == 0 {
		return math.NaN()
	}
	return Largest(r.Turns[0], of)
}

// Total returns the sum over the graph ranks of the first timed training, NaN without one.
func (r *Row) Total(of func(runfolder.RankReport) int64) float64 {
	if len(r.Turns) == 0 {
		return math.NaN()
	}
	sum := int64(0)
	for _, one := range r.Turns[0].Summary.PerRank {
		if one.Role == "graph" {
			sum += of(one)
		}
	}
	return float64(sum)
}
