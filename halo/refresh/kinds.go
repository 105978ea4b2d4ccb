package refresh

import (
	"math"
	"strconv"

	"siafu/halo"
	"siafu/internal/catalog"
)

// entry names and describes a choice.
type entry = catalog.Entry

// kind describes a policy: its name and parameters, of which the first least must be given,
// and what the rest of the program needs to know of it. A new policy is one kind in the file of
// its timetable and a line in kinds.
type kind struct {
	entry
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
	awaitsLast      bool                                        // gradients of the last epoch arrive that no epoch uses
	// share is the fraction of rows that is sent per epoch (see Policy.Share); nil means 1.
	share func(p Policy, epochs int) (share float64, exact bool)
	// copies returns the value of Policy.CopiesInTransit; nil means 0.
	copies func(p Policy) int64
	// source makes a source that is not a Timed. It returns nil for a Timed.
	source func(Policy, halo.HistoryOptions) halo.Collective
}

// uses names the ghost rows that training passes use.
type uses uint8

const (
	usesStale  uses = iota // rows that its timetable provides
	usesExact              // rows of the same epoch
	usesNone               // none
	usesEither             // rows of the same epoch or none, chosen for each epoch
)

// kinds lists the policies.
var kinds = []*kind{
	&alwaysKind,
	&previousKind,
	&everyKind,
	&sampleKind,
	&delayKind,
	&driftKind,
	&ageKind,
	&neverKind,
	&autoKind,
}

var (
	alwaysKind = kind{
		entry: entry{Name: NameAlways, Help: "ghost rows of the same epoch: exact"},
		uses:  usesExact, pushes: true,
	}
	neverKind = kind{
		entry: entry{Name: NameNever, Help: "no ghost rows: each rank trains on the edges between its own vertices, with degrees counted " +
			"on these edges; ranks share weight gradients only"},
		uses: usesNone, share: func(Policy, int) (float64, bool) { return 0, true },
	}
	// Each epoch of auto is one of always or of never, chosen outside this package.
	autoKind = kind{
		entry: entry{Name: NameAuto, Help: "`never` first, `always` at the end"},
		uses:  usesEither, share: atMostAll,
	}
)

// Choices describes all policies.
func Choices() []catalog.Entry { return catalog.Entries(kinds, nil) }

// Kinds returns the names of all policies.
func Kinds() []string { return catalog.Names(Choices()) }

// Usage lists the names that Parse accepts.
func Usage() string { return catalog.List(catalog.Forms(Choices()), "or") }

func atMostAll(Policy, int) (float64, bool) { return 1, false }

// shareOfRefreshes returns the fraction of rows sent by a policy that sends all rows every
// p.Epochs epochs.
func shareOfRefreshes(p Policy, epochs int) (float64, bool) {
	return float64(refreshes(p, epochs)) / float64(max(epochs, 1)), true
}

func refreshes(p Policy, epochs int) int { return (epochs + p.Epochs - 1) / p.Epochs }

// parameter is a parameter of a policy: the first follows its name, the second a comma.
type parameter struct {
	want string // valid values
	set  func(p *Policy, text string) bool
	// text returns the parameter in the form that set accepts, empty for the default.
	text func(p *Policy) string
}

// mostEpochs is the largest epoch, and mostGroups the largest number of groups. Each group
// scans all rows once to find its own.
const mostEpochs, mostGroups = math.MaxInt32, 64

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
