package plan

import (
	"fmt"
	"math"

	"siafu/internal/size"
	"siafu/ranks/forecast"
)

// choice is a candidate with one of its codecs.
type choice struct {
	candidate, codec int
	seconds          float64
}

func (p *Plan) at(c choice) (*Candidate, Coded) {
	one := p.Candidates[c.candidate]
	return one, one.Codecs[c.codec]
}

// best returns the allowed choice with the shortest epoch. It considers choices that fit into
// memory, or all if none fits. A later choice must be 10 % shorter, which is the smallest error
// of a forecast.
func (p *Plan) best(allowed func(*Candidate, Coded) bool) choice {
	best := choice{seconds: math.Inf(1)}
	some := p.fits() == nil
	for i, one := range p.Candidates {
		for k, coded := range one.Codecs {
			s := coded.Epoch.Seconds(p.Mode)
			if (coded.Fits || !some) && allowed(one, coded) && s < 0.9*best.seconds {
				best = choice{i, k, s}
			}
		}
	}
	return best
}

// conclude writes sentences on the bottleneck of an epoch and its remedies.
func (p *Plan) conclude(q *request) {
	if !p.Timed {
		return // without epoch times, the first candidate is as good as any
	}
	plain := p.best(func(_ *Candidate, c Coded) bool { return c.Codec == q.codecs[0] })
	p.Best = plain.candidate
	one, coded := p.at(plain)
	e := coded.Epoch
	if text := p.describeGhosts(coded); text != "" {
		defer func() { p.Verdict = append(p.Verdict, text) }()
	}
	waits := e.Rows + e.Pairs + e.Weights
	if p.Mode != "nopipe" {
		waits = e.Exposed + e.Pairs + e.Weights
	}
	say := func(format string, args ...any) { p.Verdict = append(p.Verdict, fmt.Sprintf(format, args...)) }
	if p.GraphRanks == 1 && p.Servers == 0 {
		say("One rank computes alone: an epoch takes about %s.", duration(e.Compute()))
		return
	}
	if waits < e.Compute() {
		say("Computing is the bottleneck: with %s and codec %s it takes %s of %s an epoch, and %s of communication is not hidden.",
			one.Method, coded.Codec, duration(e.Compute()), duration(plain.seconds), duration(waits))
		p.remedyComputing(e.Tensor > e.Gather, say)
		return
	}
	say("The link is the bottleneck: with %s and codec %s exposed communication takes %s of %s an epoch, computing %s.",
		one.Method, coded.Codec, duration(waits), duration(plain.seconds), duration(e.Compute()))
	p.remedyLink(plain, say)
	p.remedyInput(q, one, coded, say)
}

// spare says whether a host can carry another part, which it must after the loss of a rank if no spare
// rank is left.
func (p *Plan) spare() {
	one := p.Candidates[p.Best]
	rank, host := size.Sum(one.Memory.Peak(), forecast.Program), size.Product(p.Memory, int64(p.RanksPerHost))
	parts := int64((p.Parts + p.GraphRanks - 1) / p.GraphRanks) // of the largest rank
	need := size.Sum(size.Product(rank, int64(p.RanksPerHost)), (one.Memory.Peak()+parts-1)/parts)
	if need <= host {
		p.Verdict = append(p.Verdict, fmt.Sprintf("--survive: a host has memory for another part after a loss: it needs about %s of %s MB.",
			megabytes(need), megabytes(host)))
		return
	}
	p.Verdict = append(p.Verdict, fmt.Sprintf("--survive: a host has no memory for another part after a loss: it needs about %s of %s MB. "+
		"Set --survive spares=N to the number of ranks that may be lost, or set more --parts.",
		megabytes(need), megabytes(host)))
}

// remedyInput describes the effect of exchanging features only once.
func (p *Plan) remedyInput(q *request, one *Candidate, coded Coded, say func(string, ...any)) {
	if f := coded.forecast; f.Net.InputDropout == 0 || f.Net.CacheInput {
		return
	}
	c := q.Config
	c.InputDropout = 0
	f, _, err := forecast.Of(c, q.sized, q.view.Parts, q.view.Servers, true)
	if err != nil {
		return // the configuration was valid with another dropout
	}
	if t := f.Traffic(one.report.Ranks); t.Raw < coded.Traffic.Raw {
		say("--input-dropout 0 would exchange the input's rows only once: %s MB an epoch instead of %s.",
			megabytes(t.Raw), megabytes(coded.Traffic.Raw))
	}
}

// remedyComputing describes how to reduce computing time.
func (p *Plan) remedyComputing(tensor bool, say func(string, ...any)) {
	if tensor {
		say("Most of it is dense products: more graph ranks on hosts of their own, or a narrower --hidden, " +
			"shorten it; compression does not.")
		return
	}
	say("Most of it is gathering: more graph ranks on hosts of their own, or --precision gather=bf16, shorten it; compression does not.")
}

// remedyLink describes how to reduce communication time.
func (p *Plan) remedyLink(plain choice, say func(string, ...any)) {
	one, coded := p.at(plain)
	e := coded.Epoch
	if e.Pairs > e.Exposed+e.Weights {
		say("Most of it is rows of pairs' ends (%s MB), which every codec sends unchanged: a narrower --embedding shortens it.",
			megabytes(one.Pairs.Sent))
	} else if e.Weights > e.Exposed {
		say("Most of it is weights (%d floats): more servers share them, up to one a graph rank; --servers 0 sums them "+
			"without a server.", p.Weights)
	}
	other := p.best(func(*Candidate, Coded) bool { return true })
	if better, with := p.at(other); other.seconds < 0.9*plain.seconds {
		say("With %s and codec %s an epoch takes %s.", better.Method, with.Codec, duration(other.seconds))
	}
	if hidden := e.Rows * p.Bandwidth / max(e.Compute(), 1e-9); hidden > p.Bandwidth && e.Rows > 0 {
		say("A link of about %s would move the rows of %s as fast as they are computed.", rate(hidden), one.Method)
	}
}

// duration formats seconds with three digits.
func duration(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return fmt.Sprintf("%.3g µs", 1e6*s)
}

// rate formats bytes/s as the name of a link.
func rate(bytes float64) string {
	bits := 8 * bytes
	switch {
	case bits >= 1e9:
		return fmt.Sprintf("%.3g Gbit/s", bits/1e9)
	case bits >= 1e6:
		return fmt.Sprintf("%.3g Mbit/s", bits/1e6)
	}
	return fmt.Sprintf("%.3g kbit/s", bits/1e3)
}
