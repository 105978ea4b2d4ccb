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

// GhostChoice is the estimate for a value of --recompute-ghosts, with a partitioner and a codec.
type GhostChoice struct {
	Ghosts  string           `json:"recompute_ghosts"`
	Counted bool             `json:"counted"`       // ghosts of all hops are counted; otherwise auto does not choose it
	Peak    int64            `json:"peak_bytes"`    // of the largest rank, including the program
	Fits    bool             `json:"fits"`          //
	Fetched int64            `json:"fetched_bytes"` // inputs of ghosts, once before the first epoch
	Traffic forecast.Traffic `json:"traffic"`
	Epoch   forecast.Epoch   `json:"epoch"`
}

// ghostChoices estimates every value of --recompute-ghosts from which ranks on several hosts may
// choose.
func (c *Candidate) ghostChoices(q *request, of config.Config, one *Coded) error {
	list := of.GhostChoices(of.NetworkOf(q.sized), q.sized, q.fitsInput(q.sized, c.report))
	if q.view.Ranks <= q.link.RanksPerHost || list == nil {
		return nil
	}
	for _, value := range list {
		of.RecomputeGhosts = value
		other, err := c.coded(q, of)
		if err != nil {
			return err
		}
		other.Ghosts = of.RecomputeGhosts
		one.choices = append(one.choices, other)
		one.Choices = append(one.Choices, GhostChoice{
			Ghosts: other.Ghosts, Counted: other.forecast.CountsGhosts(c.report.Ranks), Peak: other.Peak, Fits: other.Fits,
			Fetched: other.forecast.Fetched(c.report.Ranks), Traffic: other.Traffic,
		})
	}
	one.Ghosts = one.choices[0].Ghosts
	return nil
}

// chooseGhosts replaces an estimate by that of the choice with the shortest epoch (ChooseGhosts)
// among those that fit into memory and whose ghosts are counted. The choices' epochs must be set.
func (c *Coded) chooseGhosts(seconds func(forecast.Epoch) float64) {
	if len(c.choices) == 0 {
		return
	}
	values, other := make([]string, len(c.choices)), -1
	for k := range c.choices {
		c.Choices[k].Epoch, values[k] = c.choices[k].Epoch, c.Choices[k].Ghosts
	}
	of := func(k int) float64 {
		if at := c.Choices[k]; k > 0 && !(at.Fits && at.Counted) {
			return math.Inf(1)
		}
		return seconds(c.Choices[k].Epoch)
	}
	best := forecast.ChooseGhosts(values, of)
	for k := range values {
		if k != best && !math.IsInf(of(k), 1) && (other < 0 || of(k) < of(other)) {
			other = k
		}
	}
	list, all := c.choices, c.Choices
	*c = list[best]
	c.Choices = all
	if other >= 0 {
		c.Other = &all[other].Epoch
	}
}

// describeGhosts returns a sentence with every value of --recompute-ghosts, empty without a choice.
func (p *Plan) describeGhosts(coded Coded) string {
	var list []string
	for _, c := range coded.Choices {
		text := fmt.Sprintf("%s %s an epoch, %s MB of rows, %s MB on the largest rank", c.Ghosts, duration(p.seconds(c.Epoch)),
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
func (c GhostChoice) note() string {
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
			t.Add(c.Ghosts, coded.Codec, p.seconds(c.Epoch), megabytes(c.Traffic.Sent), megabytes(c.Fetched), megabytes(c.Peak), note)
		}
	}
	t.Text(w)
}
