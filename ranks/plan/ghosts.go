package plan

import (
	"fmt"
	"io"
	"math"
	"strings"

	"siafu/internal/table"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
)

// ghostChoices estimates every value of --recompute-ghosts from which ranks on several hosts may
// choose.
func (c *Candidate) ghostChoices(q *request, of config.Config, one *Coded) error {
	list := of.GhostChoices(of.NetworkOf(q.sized), q.sized, q.fitsInput(q.sized, c.report))
	if q.view.Ranks <= q.link.RanksPerHost {
		return nil
	}
	for _, of.RecomputeGhosts = range list {
		other, err := c.coded(q, of)
		if err != nil {
			return err
		}
		other.Ghosts, other.Counted = of.RecomputeGhosts, other.forecast.CountsGhosts(c.report.Ranks)
		other.Fetched = other.forecast.Fetched(c.report.Ranks)
		one.Choices = append(one.Choices, other)
		one.Ghosts = one.Choices[0].Ghosts
	}
	return nil
}

// chooseGhosts replaces an estimate by that of the choice with the shortest epoch (ChooseGhosts)
// among those that fit into memory and whose ghosts are counted. The choices' epochs must be set.
func (c *Coded) chooseGhosts(mode string) {
	list, other := c.Choices, -1
	if len(list) == 0 {
		return
	}
	var values []string
	var seconds []float64
	for k, one := range list {
		values, seconds = append(values, one.Ghosts), append(seconds, one.Epoch.Seconds(mode))
		if k > 0 && one.note() != "" {
			seconds[k] = math.Inf(1)
		}
	}
	best := forecast.ChooseGhosts(values, seconds)
	for k, s := range seconds {
		if k != best && !math.IsInf(s, 1) && (other < 0 || s < seconds[other]) {
			other = k
		}
	}
	*c = list[best]
	c.Choices = list
	if other >= 0 {
		c.Other = &list[other].Epoch
	}
}

// describeGhosts returns a sentence with every value of --recompute-ghosts, empty without a choice.
func (p *Plan) describeGhosts(coded Coded) string {
	var list []string
	for _, c := range coded.Choices {
		text := fmt.Sprintf("%s %s an epoch, %s MB of rows, %s MB on the largest rank", c.Ghosts, duration(c.Epoch.Seconds(p.Mode)),
			megabytes(c.Traffic.Sent), megabytes(c.Peak))
		if note := c.note(); note != "" {
			text += " (" + note + ")"
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("--recompute-ghosts auto is %s: %s.", coded.Ghosts, strings.Join(list, "; "))
}

// note returns why auto does not choose c, empty if it may.
func (c *Coded) note() string {
	switch {
	case !c.Fits:
		return "too large"
	case !c.Counted:
		return "estimated ghosts"
	}
	return ""
}

// ghosts prints the table of --recompute-ghosts for a partitioner, nothing without a choice.
func (p *Plan) ghosts(w io.Writer, one *Candidate) {
	if len(one.Codecs[0].Choices) == 0 {
		return
	}
	fmt.Fprintf(w,
		"\nComputed ghost rows with %s: MB of ghost rows an epoch, MB of inputs fetched once, MB of the largest rank\n", one.Method)
	t := table.Right("--recompute-ghosts", "codec", "seconds|%.4f", "rows", "fetched", "largest rank", "")
	for _, coded := range one.Codecs {
		for _, c := range coded.Choices {
			note := c.note()
			if c.Ghosts == coded.Ghosts {
				note = "auto"
			}
			t.Add(c.Ghosts, coded.Codec, c.Epoch.Seconds(p.Mode), megabytes(c.Traffic.Sent), megabytes(c.Fetched), megabytes(c.Peak), note)
		}
	}
	t.Text(w)
}
