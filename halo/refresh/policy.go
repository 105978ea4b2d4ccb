package refresh

import (
	"fmt"
	"strings"

	"siafu/halo"
	"siafu/internal/catalog"
	"siafu/internal/fault"
)

// Names of the policies that other packages name.
const (
	NameAlways = "always"
	NameNever  = "never"
	NameAuto   = "auto"
)

// Policy is a policy of refreshing ghosts, the value of --refresh.
type Policy struct {
	Name   string
	Epochs int     // N of every and age, R of delay, K of drift
	Lag    int     // of every: after how many epochs rows are used
	Value  float64 // P of sample, THETA of drift, decay of age and previous
	// Rows and Grads report what previous smooths.
	Rows, Grads bool
}

// Parse parses --refresh. Empty text means always. Its faults have kind Usage.
func Parse(text string) (Policy, error) {
	name, rest, given := strings.Cut(text, ":")
	if text == "" {
		name = NameAlways
	}
	k, ok := catalog.Find(kinds, name)
	if !ok {
		return Policy{}, refusal(text, "one of "+Usage())
	}
	var args []string
	if given {
		args = strings.Split(rest, ",")
	}
	p := k.defaults
	p.Name = name
	switch {
	case len(k.params) == 0 && given:
		return Policy{}, refusal(text, name+", without a parameter")
	case len(args) > len(k.params):
		return Policy{}, refusal(text, "one of "+Usage())
	case len(args) < k.least:
		return Policy{}, refusal(text, fmt.Sprintf("%s with %s", k.Form, k.params[0].want))
	}
	for i, arg := range args {
		if !k.params[i].set(&p, arg) {
			return Policy{}, refusal(text, fmt.Sprintf("%s with %s", k.Form, k.params[i].want))
		}
	}
	return p, nil
}

func refusal(text, want string) error {
	return fault.New(fault.Usage, "train", "", "--refresh=%s", text).Then("it must be %s", want)
}

// String returns the form that Parse accepts.
func (p Policy) String() string {
	var args []string
	for _, q := range p.kind().params {
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
	if k, ok := catalog.Find(kinds, p.Name); ok {
		return k
	}
	return &alwaysKind
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
func (p Policy) AwaitsLast() bool { return p.kind().awaitsLast }

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
	if k := p.kind(); k.copies != nil {
		return k.copies(p)
	}
	return 0
}

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
	if k := p.kind(); k.source != nil {
		if s := k.source(p, o); s != nil {
			return s
		}
	}
	return NewTimed(p, o)
}
