package tune

import (
	"fmt"
	"strings"
)

// said is a line of what is predicted and what follows from it.
func (c *Chooser) said(predicted []float64, then string) string {
	var list []string
	for i, s := range predicted {
		list = append(list, c.names[i]+" "+number(s))
	}
	p, q, _ := c.model.Links.Slowest()
	latency, rate := c.model.Links.At(p, q)
	return fmt.Sprintf("codec auto: epoch %d: link %.3g Gbit/s %.0f us; predicted s/epoch: %s; %s",
		c.epoch, 8*rate/1e9, 1e6*latency, strings.Join(list, ", "), then)
}

// results is a line of what was measured.
func (c *Chooser) results() string {
	var list []string
	for i, m := range c.trial.measured {
		if len(m) > 0 {
			list = append(list, c.names[i]+" "+number(typical(m)))
		}
	}
	return fmt.Sprintf("codec auto: epoch %d: measured s/epoch: %s", c.epoch, strings.Join(list, ", "))
}

// changed is a line of why all begins again.
func (c *Chooser) changed(seconds float64) string {
	return fmt.Sprintf("codec auto: epoch %d: %s s/epoch with %s over %d epochs where %s was expected; measuring again",
		c.epoch, number(seconds), c.Codec(), c.length, number(c.expected))
}

func (c *Chooser) list(candidates []int) string {
	var names []string
	for _, k := range candidates {
		names = append(names, c.names[k])
	}
	return strings.Join(names, ", ")
}

// number is seconds in three digits.
func number(s float64) string { return fmt.Sprintf("%.3g", s) }
