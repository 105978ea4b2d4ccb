package dorylus

import (
	"math"
	"runtime"
	"strconv"
	"strings"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

// backend is the place of tensor work, by the paper's name.
type backend struct {
	name  string
	flags []string
}

// mode is the order of the tasks of an epoch.
type mode struct {
	name  string
	flags []string
	late  bool // bounded asynchrony
}

var (
	functions = backend{"Dorylus", words("--tensor lambda --lambda local")}
	cpuOnly   = backend{"CPU only", words("--tensor cpu")}
	gpuOnly   = backend{"GPU only", words("--tensor cuda")}
	backends  = []backend{functions, cpuOnly, gpuOnly}

	nopipe = mode{"no-pipe", words("--mode nopipe"), false}
	pipe   = mode{"pipe", words("--mode pipe"), false}
	async0 = mode{"async (s=0)", words("--mode async --mode staleness=0"), true}
	async1 = mode{"async (s=1)", words("--mode async --mode staleness=1"), true}

	// Dorylus never waits for rows or weights within the bound.
	noWait0 = mode{"async (s=0), no wait", append(words("--mode linger=0"), async0.flags...), true}
	noWait1 = mode{"async (s=1), no wait", append(words("--mode linger=0"), async1.flags...), true}
)

func text(n int) string { return strconv.Itoa(n) }

// timed is the measured time of a training's epochs.
type timed struct {
	each float64        // seconds of an epoch; NaN: unknown
	run  *trials.Result // the fastest; nil: none
	why  string         // reason why none was run
}

// perEpoch returns the mean of a number over the training's epochs, NaN without a training.
func (t timed) perEpoch(of func(runfolder.Epoch) float64) float64 {
	if t.run == nil {
		return math.NaN()
	}
	return trials.PerEpoch([]*trials.Result{t.run}, of)
}

func (b *bench) time(s *trials.Sheet, g *graphOf, model string, on backend, m mode) timed {
	var turns []trials.Trial
	for turn := range b.Turns {
		flags := append(append(words("--eval-every 0"), "--epochs", text(b.Timed), "--threads", text(b.threads())), m.flags...)
		turns = append(turns, trials.Trial{Data: g.Data, Ranks: b.Ranks + 1, Turn: turn,
			Flags: b.flags(model, append(flags, on.flags...)...)})
	}
	return b.fastest(s, on, turns, s.Runner)
}

// fastest returns the fastest of several trainings.
func (b *bench) fastest(s *trials.Sheet, on backend, turns []trials.Trial, by trials.Runner) timed {
	t := timed{each: math.NaN()}
	for _, turn := range turns {
		r, why := b.runTrial(s, on, turn, by)
		if r == nil {
			t.why = why
			return t
		}
		if each := trials.PerEpoch([]*trials.Result{r}, trials.Seconds); !(each >= t.each) {
			t.each, t.run = each, r
		}
	}
	return t
}

// threads returns the threads per rank in trainings for time.
func (b *bench) threads() int { return max(runtime.NumCPU()/b.Ranks, 1) }

// runTrial returns the result of a trial, or the reason for none: the time limit is reached,
// or this build or machine lacks the backend, which is then not tried again.
func (b *bench) runTrial(s *trials.Sheet, on backend, t trials.Trial, by trials.Runner) (*trials.Result, string) {
	kinds := []fault.Kind{fault.Config, fault.Usage, fault.Missing}
	if on.name == cpuOnly.name {
		kinds = nil
	}
	r, lacking := s.Try(on.name, t, by, kinds...)
	switch {
	case lacking != nil:
		s.Note(on.name + ", not run: " + reason(lacking))
		return nil, reason(lacking)
	case r == nil:
		return nil, "the hours were over"
	}
	return r, ""
}

// reason returns the first line of an error.
func reason(err error) string {
	why, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), op+": "), "\n")
	return why
}

// trainForAccuracy trains for accuracy on CPUs, once per seed: the place of tensor work does
// not change results.
func (b *bench) trainForAccuracy(s *trials.Sheet, g *graphOf, model string, m mode) []*trials.Result {
	epochs := b.Epochs
	if m.late {
		epochs *= 2
	}
	return b.trainWith(s, g, model, cpuOnly, epochs, m.flags...)
}

func (b *bench) trainWith(s *trials.Sheet, g *graphOf, model string, on backend, epochs int, flags ...string) (list []*trials.Result) {
	for seed := range b.Seeds {
		more := append(append(words("--eval-every 1"), "--epochs", text(epochs), "--seed", text(seed+1)), flags...)
		r, _ := b.runTrial(s, on, trials.Trial{Data: g.Data, Ranks: b.Ranks + 1, Flags: b.flags(model, more...)}, s.Runner)
		if r == nil {
			return list
		}
		list = append(list, r)
	}
	return list
}
