package simulate

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// print prints what was recorded and what is modelled.
func (o *Options) print(w io.Writer, p *past, c *Cluster, m Modelled) error {
	fmt.Fprintf(w, "recorded: %v\nmodelled: %d graph ranks (%d servers) x %d workers%s, links of %s and %v, %s\n\n",
		p, len(c.Ranks), c.Servers, c.Workers, o.hosts(), cmp.Or(o.Rate, "any rate"), o.Latency, o.rule(p, c))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ts/epoch\twaits for rows\tfor weights, sums\tidle\t")
	var was []Use
	for _, r := range p.Ranks {
		was = append(was, r.Use)
	}
	line(t, "recorded", was)
	line(t, "modelled", m.Ranks)
	if err := t.Flush(); err != nil {
		return err
	}
	recorded := mean(was).Span
	fmt.Fprintf(w, "\nmodelled to recorded: %.3f; recorded by the run's own clock: %.6f s/epoch; those who waited for rows went on %.0f us after the last were sent\n\n",
		mean(m.Ranks).Span/recorded, p.seconds, 1e6*p.Arrival)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tmodelled: waits for rows\tfor weights, sums\tidle\trecorded: idle\t")
	for r, u := range m.Ranks[:min(len(m.Ranks), mostLines)] {
		old := "-"
		if len(was) == len(m.Ranks) {
			old = fmt.Sprintf("%.1f %%", 100*was[r].Idle())
		}
		fmt.Fprintf(t, "%d\t%.6f\t%.6f\t%.1f %%\t%s\t\n", r, u.Rows, u.Sums, 100*u.Idle(), old)
	}
	if err := t.Flush(); err != nil || len(m.Ranks) <= mostLines {
		return err
	}
	_, err := fmt.Fprintf(w, "and %d ranks more\n", len(m.Ranks)-mostLines)
	return err
}

// mostLines is how many ranks have a line of their own.
const mostLines = 16

// hosts says what is special about hosts.
func (o *Options) hosts() (text string) {
	if o.Processors > 0 {
		text = fmt.Sprintf(" on %d processors", o.Processors)
	}
	if len(o.Straggler) > 0 {
		text += ", stragglers " + strings.Join(o.Straggler, " ")
	}
	return text
}

// rule says where the counts of the ranks come from.
func (o *Options) rule(p *past, c *Cluster) string {
	switch {
	case o.Data != "":
		return "rows and counts of the shards in " + o.Data
	case len(c.Ranks) == len(p.Ranks):
		return "ghosts spread evenly over their owners"
	}
	return fmt.Sprintf("work by the number of ranks, ghosts by its power of %g, spread evenly", o.GhostPower)
}

func line(w io.Writer, name string, of []Use) {
	u := mean(of)
	fmt.Fprintf(w, "%s\t%.6f\t%.6f\t%.6f\t%.1f %%\t\n", name, u.Span, u.Rows, u.Sums, 100*u.Idle())
}

// mean is the mean over ranks.
func mean(of []Use) (sum Use) {
	for _, u := range of {
		sum.add(u, 1/float64(len(of)))
	}
	return sum
}
