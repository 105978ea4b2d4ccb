package refresh

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/halo"
	"siafu/internal/fault"
)

// Names of policies.
const (
	NameAlways   = "always"
	NameNever    = "never"
	NamePrevious = "previous"
	NameEvery    = "every"
	NameSample   = "sample"
	NameDelay    = "delay"
	NameDrift    = "drift"
	NameAge      = "age"
	NameAuto     = "auto" // not in this package: each epoch is one of always or of never
)

// Usage lists the names that Parse accepts.
const Usage = "always, never, previous[:none, or F, G or GF and a decay, as in previous:GF0.95], every:N[,LAG], sample:P, delay:R, drift:THETA[,K], age:N[,DECAY] or auto"

// Policy is a policy of refreshing ghosts, the value of --refresh.
type Policy struct {
	Name   string
	Epochs int     // N of every and age, R of delay, K of drift
	Lag    int     // of every: after how many epochs rows are used
	Value  float64 // P of sample, THETA of drift, decay of age and previous
	// Rows and Grads report what previous smooths.
	Rows, Grads bool
}

// parameter is a parameter of a policy: the first follows its name, the second a comma.
type parameter struct {
	want string // valid values
	set  func(p *Policy, text string) bool
	// text returns the parameter in the form that set accepts, empty for the default.
	text func(p *Policy) string
}

// kind describes a policy: its name and parameters, of which the first least must be given,
// and what the rest of the program needs to know of it. A new policy is one kind in kinds,
// with a timetable in a file of its own.
type kind struct {
	name     string
	form     string // of its parameters
	least    int
	defaults Policy // values of parameters that are not given
	params   []parameter

	uses            uses
	timetable       func(Policy, halo.HistoryOptions) timetable // nil for always, never and auto
	samples         bool                                        // it selects single vertices, so rows cannot be summed before they are sent
	pushes          bool                                        // fully asynchronous ranks can push rows by it
	frames          bool                                        // rows are sent in frames, whatever the codec
	needsStoredRows bool                                        // later epochs use stored rows, which a resumed run needs
	passes          bool                                        // extra passes between epochs refresh the ghosts
	// share is the fraction of rows that is sent per epoch (see Policy.Share); nil means 1.
	share func(p Policy, epochs int) (share float64, exact bool)
}

// uses names the ghost rows that training passes use.
type uses uint8

const (
	usesStale  uses = iota // rows that its timetable provides
	usesExact              // those of the same epoch
	usesNone               // none
	usesEither             // rows of the same epoch or none, chosen for each epoch
)

// mostEpochs is the largest epoch, and mostGroups the largest number of groups. Each group
// scans all rows once to find its own.
const mostEpochs, mostGroups = math.MaxInt32, 64

var kinds []kind

func init() {
	kinds = []kind{
		{name: NameAlways, uses: usesExact, pushes: true},
		{name: NameNever, uses: usesNone, share: func(Policy, int) (float64, bool) { return 0, true }},
		{name: NameAuto, uses: usesEither, share: atMostAll},
		{name: NamePrevious, form: "previous[:none|WHICHDECAY]", timetable: smoothed, needsStoredRows: true,
			defaults: Policy{Value: 0.95, Rows: true, Grads: true}, params: []parameter{{
				"WHICH F, G or GF and DECAY from 0 to below 1, as in previous:GF0.95, or none", (*Policy).setSmoothing, (*Policy).smoothing}}},
		{name: NameEvery, form: "every:N[,LAG]", timetable: every, needsStoredRows: true, pushes: true, share: shareOfRefreshes, least: 1, params: []parameter{
			epochs("N a number of epochs, 1 or more", 1, mostEpochs),
			{"LAG a number of epochs from 0 to N", func(p *Policy, text string) bool { return count(&p.Lag, text, 0, p.Epochs) },
				func(p *Policy) string { return unless(p.Lag, 0) }}}},
		{name: NameSample, form: "sample:P", timetable: sample, samples: true, least: 1, params: []parameter{
			value("P a probability above 0 and up to 1", func(x float64) bool { return x > 0 && x <= 1 }, 0)},
			share: func(p Policy, _ int) (float64, bool) { return p.Value, p.Value == 1 }},
		{name: NameDelay, form: "delay:R", timetable: delayed, needsStoredRows: true, least: 1,
			params: []parameter{epochs(fmt.Sprint("R a number of epochs from 0 to ", mostGroups), 0, mostGroups)},
			share:  func(p Policy, _ int) (float64, bool) { return 1 / float64(max(p.Epochs, 1)), p.Epochs <= 1 }},
		{name: NameDrift, form: "drift:THETA[,K]", timetable: drifting, needsStoredRows: true, frames: true, share: atMostAll, least: 1,
			defaults: Policy{Epochs: 10}, params: []parameter{
				value("THETA a fraction of a block's norm, 0 or more", func(x float64) bool { return x >= 0 }, -1),
				{"K a number of epochs, 1 or more", func(p *Policy, text string) bool { return count(&p.Epochs, text, 1, mostEpochs) },
					func(p *Policy) string { return unless(p.Epochs, 10) }}}},
		{name: NameAge, form: "age:N[,DECAY]", timetable: aged, needsStoredRows: true, passes: true, share: shareOfRefreshes, least: 1,
			defaults: Policy{Value: 1}, params: []parameter{
				epochs("N a number of epochs, 1 or more", 1, mostEpochs),
				value("DECAY a weight above 0 and up to 1", func(x float64) bool { return x > 0 && x <= 1 }, 1)}},
	}
}

func atMostAll(Policy, int) (float64, bool) { return 1, false }

// shareOfRefreshes is the share of a policy that sends all rows every p.Epochs epochs.
func shareOfRefreshes(p Policy, epochs int) (float64, bool) {
	return float64(refreshes(p, epochs)) / float64(max(epochs, 1)), true
}

func refreshes(p Policy, epochs int) int { return (epochs + p.Epochs - 1) / p.Epochs }

// Kinds returns the names of all policies.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Parse parses --refresh. Empty text means always. Its faults have kind Usage.
func Parse(text string) (Policy, error) {
	name, rest, given := strings.Cut(text, ":")
	if text == "" {
		name = NameAlways
	}
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		return Policy{}, refusal(text, "one of "+Usage)
	}
	k, args := kinds[at], []string(nil)
	if given {
		args = strings.Split(rest, ",")
	}
	p := k.defaults
	p.Name = name
	switch {
	case len(k.params) == 0 && given:
		return Policy{}, refusal(text, name+", without a parameter")
	case len(args) > len(k.params):
		return Policy{}, refusal(text, "one of "+Usage)
	case len(args) < k.least:
		return Policy{}, refusal(text, fmt.Sprintf("%s with %s", k.form, k.params[0].want))
	}
	for i, arg := range args {
		if !k.params[i].set(&p, arg) {
			return Policy{}, refusal(text, fmt.Sprintf("%s with %s", k.form, k.params[i].want))
		}
	}
	return p, nil
}

func refusal(text, want string) error {
	return fault.New(fault.Usage, "train", "", "--refresh=%s", text).Then("it must be %s", want)
}

// String returns the form that Parse accepts.
func (p Policy) String() string {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == p.Name })
	if at < 0 {
		return p.Name
	}
	var args []string
	for _, q := range kinds[at].params {
		if text := q.text(&p); text != "" {
			args = append(args, text)
		}
	}
	if args == nil {
		return p.Name
	}
	return p.Name + ":" + strings.Join(args, ",")
}

// kind returns the description of a parsed policy, or of always for the zero value.
func (p Policy) kind() *kind {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == p.Name })
	return &kinds[max(at, 0)]
}

// Exact reports whether training passes use ghost rows of the same epoch.
func (p Policy) Exact() bool { return p.kind().uses == usesExact }

// NoGhosts reports whether training passes use no ghost rows.
func (p Policy) NoGhosts() bool { return p.kind().uses == usesNone }

// Alternates reports whether each training pass uses either ghost rows of the same epoch or
// none.
func (p Policy) Alternates() bool { return p.kind().uses == usesEither }

// Samples reports whether the policy selects single vertices. Their rows cannot be summed
// before they are sent.
func (p Policy) Samples() bool { return p.kind().samples }

// Pushes reports whether fully asynchronous ranks can push rows by the policy.
func (p Policy) Pushes() bool { return p.kind().pushes && p.Lag == 0 }

// Frames reports whether rows are sent in frames, whatever the codec.
func (p Policy) Frames() bool { return p.kind().frames }

// AwaitsLast reports whether gradients of the last epoch arrive that no epoch uses.
func (p Policy) AwaitsLast() bool { return p.Name == NamePrevious }

// Passes returns the number of passes that only refresh ghosts in a run of the given number
// of epochs.
func (p Policy) Passes(epochs int) int {
	if !p.kind().passes {
		return 0
	}
	return refreshes(p, epochs)
}

// CopiesInTransit returns how many copies of an exchange's rows can be in transit beyond their
// task, sent and received ones.
func (p Policy) CopiesInTransit() int64 {
	switch {
	case p.unsmoothed():
		return 4
	case p.Name == NamePrevious, p.Lag > 0, p.Name == NameDelay && p.Epochs > 0:
		return 2
	}
	return 0
}

// unsmoothed reports whether rows of the previous epoch are used as they arrive.
func (p Policy) unsmoothed() bool { return p.Name == NamePrevious && !p.Rows && !p.Grads }

// NeedsStoredRows reports whether a resumed run needs the stored rows of ranks, because later
// epochs use them.
func (p Policy) NeedsStoredRows() bool { return p.kind().needsStoredRows }

// Share returns the mean fraction of all rows that is sent per epoch, in a run of the given
// number of epochs. exact reports whether the value is exact; otherwise it is the expected
// value, or for drift the maximum.
func (p Policy) Share(epochs int) (share float64, exact bool) {
	if k := p.kind(); k.share != nil {
		return k.share(p, epochs)
	}
	return 1, true
}

// NewSource makes the source of ghost rows of a policy that uses stale ones. Collective.
func (p Policy) NewSource(o halo.HistoryOptions) halo.Collective {
	if p.unsmoothed() {
		return NewPrevious(o.Shapes, o.Seed, o.Comm, o.Plan, o.Codec, o.Team, o.Ops, o.Arena)
	}
	return NewTimed(p, o)
}

// epochs describes the parameter Policy.Epochs.
func epochs(want string, least, most int) parameter {
	return parameter{want, func(p *Policy, text string) bool { return count(&p.Epochs, text, least, most) },
		func(p *Policy) string { return strconv.Itoa(p.Epochs) }}
}

// value describes the parameter Policy.Value, whose default is unsaid.
func value(want string, fits func(float64) bool, unsaid float64) parameter {
	set := func(p *Policy, text string) bool {
		x, err := strconv.ParseFloat(text, 64)
		p.Value = x
		return err == nil && fits(x) && !math.IsInf(x, 0)
	}
	return parameter{want, set, func(p *Policy) string {
		if p.Value == unsaid {
			return ""
		}
		return strconv.FormatFloat(p.Value, 'g', -1, 64)
	}}
}

// count parses text into to, if the number is in a range.
func count(to *int, text string, least, most int) bool {
	n, err := strconv.Atoi(text)
	*to = n
	return err == nil && n >= least && n <= most
}

func unless(n, unsaid int) string {
	if n == unsaid {
		return ""
	}
	return strconv.Itoa(n)
}

// noSmoothing is the parameter of previous for unsmoothed ghosts.
const noSmoothing = "none"

// setSmoothing parses what PipeGCN's variants smooth, and the decay.
func (p *Policy) setSmoothing(text string) bool {
	if text == noSmoothing {
		p.Rows, p.Grads, p.Value = false, false, 0
		return true
	}
	which := strings.TrimRight(text, "0123456789.e-")
	p.Rows, p.Grads = strings.HasSuffix(which, "F"), strings.HasPrefix(which, "G")
	x, err := strconv.ParseFloat(text[len(which):], 64)
	p.Value = x
	return slices.Contains([]string{"F", "G", "GF"}, which) && err == nil && x >= 0 && x < 1
}

func (p *Policy) smoothing() string {
	which := map[[2]bool]string{{false, true}: "F", {true, false}: "G", {true, true}: "GF"}[[2]bool{p.Grads, p.Rows}]
	if which == "" {
		return noSmoothing
	}
	return which + strconv.FormatFloat(p.Value, 'g', -1, 64)
}
