package tune

import (
	"slices"
	"testing"
)

// course is how long epochs alone, exact ones and evaluations take, and what losses are:
// of the whole graph before an epoch, and of ranks by themselves.
type course struct {
	alone, exact, evaluation float64
	whole, own               func(epoch int) float64
	unseen                   bool // there are no evaluations
}

func falling(e int) float64 { return 1 / float64(e) }

// run returns the epochs of a run that train alone.
func (c course) run(p *Phases, first, last int) (epochs []int) {
	for e := first; e <= last; e++ {
		if !c.unseen {
			p.Evaluated(c.whole(e), c.evaluation)
		}
		seconds, loss := c.exact, c.whole(e)
		if p.Alone() {
			epochs = append(epochs, e)
			seconds, loss = c.alone, c.own(e)
		}
		if report, due := p.Ended(seconds, loss); due {
			p.Agreed(report)
		}
	}
	return epochs
}

// span returns the numbers from a to b, both included.
func span(a, b int) (list []int) {
	for ; a <= b; a++ {
		list = append(list, a)
	}
	return list
}

// Ranks train alone, by the rule, in these epochs of 200.
func TestPhases(t *testing.T) {
	slow := course{alone: 1, exact: 10, evaluation: 4, whole: falling, own: falling}
	with := func(change func(c *course)) course {
		c := slow
		change(&c)
		return c
	}
	tried := slices.Concat(span(1, trial), span(2*trial+1, 180))
	for name, test := range map[string]struct {
		course
		want []int
	}{
		"evaluations alone take longer": {slow, span(1, 180)},
		"exact epochs take longer":      {with(func(c *course) { c.exact, c.evaluation = 1.4, 1 }), tried},
		"exact epochs take hardly longer": {
			with(func(c *course) { c.exact, c.evaluation = 1.25, 1 }), span(1, trial)},
		"no evaluations": {with(func(c *course) { c.unseen = true }), tried},
		"the loss falls no more behind epoch 100": { // that of epoch 101 would be the next lower one
			with(func(c *course) { c.whole = func(e int) float64 { return falling(min(e, 100)) } }), span(1, 119)},
		"the loss stands for a while": {
			with(func(c *course) {
				c.whole = func(e int) float64 { return falling((e + 18) / 19) }
				c.own = c.whole
			}), span(1, 180)},
		"ranks are misled from epoch 50 on": {
			with(func(c *course) {
				c.own = func(e int) float64 { return falling(e) / (1 + float64(e)/48) }
			}), span(1, 49)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.run(NewPhases(1, 200, false), 1, 200); !slices.Equal(got, test.want) {
				t.Errorf("alone in %v, not in %v", got, test.want)
			}
		})
	}
}

// Epochs are exact in a run that resumes after its epochs without ghosts or near its end, and after
// Finish. A run that resumes earlier measures again.
func TestPhasesGoOn(t *testing.T) {
	slow := course{alone: 1, exact: 10, evaluation: 4, whole: falling, own: falling}
	for first, over := range map[int]bool{50: true, 91: false} {
		if p := NewPhases(first, 100, over); !p.Over() || slow.run(p, first, 100) != nil {
			t.Errorf("from epoch %d on ranks train alone", first)
		}
	}
	p := NewPhases(80, 100, false)
	if got := slow.run(p, 80, 85); !slices.Equal(got, span(80, 85)) {
		t.Errorf("alone in %v", got)
	}
	if p.Over() || !p.Finish() || p.Finish() || !p.Over() || slow.run(p, 86, 100) != nil {
		t.Error("the epochs alone do not end once")
	}
}
