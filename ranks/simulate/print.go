package simulate

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"siafu/internal/table"
)

// print prints recorded and modelled times.
func (o *Options) print(w io.Writer, p *recordedRun, c *Cluster, m Result, fails []float64) error {
	fmt.Fprintf(w, "recorded: %v\nmodelled: %d graph ranks (%d servers) x %d workers%s, %s, links of %s and %v, %s\n\n",
		p, len(c.Ranks), c.Servers, c.Workers, o.hosts(), c.describeMode(p), cmp.Or(o.Rate, "any rate"), o.Latency, o.rule(p, c))
	t := table.Right("", "s/epoch|%.6f", "waits for rows|%.6f", "for weights, sums|%.6f", "idle|%.1f %%")
	var was []Use
	for _, r := range p.Ranks {
		was = append(was, r.Use)
	}
	for k, u := range []Use{mean(was), mean(m.Ranks)} {
		t.Add([]string{"recorded", "modelled"}[k], u.Span, u.Rows, u.Sums, 100*u.Idle())
	}
	if err := t.Text(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nmodelled to recorded: %.3f; recorded by the run's own clock: %.6f s/epoch%s\n",
		mean(m.Ranks).Span/mean(was).Span, p.seconds, p.arrived())
	if now, old := mean(m.Ranks).Disk, mean(was).Disk; now+old > 0 {
		fmt.Fprintf(w, "waits for files: modelled %.6f s/epoch, recorded %.6f\n", now, old)
	}
	o.assisted(w, p, c)
	o.spent(w, c, m)
	o.failed(w, m, fails)
	fmt.Fprintln(w)
	t = table.Right("rank", "modelled: waits for rows|%.6f", "for weights, sums|%.6f", "idle|%.1f %%", "recorded: idle|%.1f %%")
	for r, u := range m.Ranks[:min(len(m.Ranks), mostLines)] {
		old := any("-")
		if len(was) == len(m.Ranks) {
			old = 100 * was[r].Idle()
		}
		t.Add(r, u.Rows, u.Sums, 100*u.Idle(), old)
	}
	if err := t.Text(w); err != nil || len(m.Ranks) <= mostLines {
		return err
	}
	_, err := fmt.Fprintf(w, "and %d ranks more\n", len(m.Ranks)-mostLines)
	return err
}

// mostLines is the maximal number of ranks with their own line.
const mostLines = 16

// hosts describes special settings of hosts.
func (o *Options) hosts() (text string) {
	if o.Processors > 0 {
		text = fmt.Sprintf(" on %d processors", o.Processors)
	}
	if o.DiskRate != "" {
		text += ", disks of " + strings.TrimSuffix(o.DiskRate, "/s") + "/s"
	}
	if len(o.Straggler) > 0 {
		text += ", stragglers " + strings.Join(o.Straggler, " ")
	}
	if len(o.SlowLink) > 0 {
		text += ", slow links " + strings.Join(o.SlowLink, " ")
	}
	return text
}

// describeMode describes the mode, and where tensor work runs.
func (c *Cluster) describeMode(p *recordedRun) string {
	text := "--mode " + p.Info["mode"]
	if c.Staleness >= 0 {
		text = fmt.Sprintf("--mode async --staleness %d", c.Staleness)
	}
	if f := c.Functions; f != nil {
		text += fmt.Sprintf(", %d functions a rank with %d MB behind %d bridges", f.AtOnce, f.Memory, f.Bridges)
	}
	return text
}

// arrived describes the delay of a waiting worker.
func (r *Recording) arrived() string {
	if r.paced() {
		return ""
	}
	return fmt.Sprintf("; median delay from the last send of rows to the continuation of a waiting rank: %.0f us", 1e6*r.Arrival)
}

// assisted prints the time of an epoch without assistance, if there is any.
func (o *Options) assisted(w io.Writer, p *recordedRun, c *Cluster) {
	alone := *c
	alone.Alone = true
	switch {
	case c.Workers == 1:
	case p.Divided:
		fmt.Fprintf(w, "if workers without a task did not assist others: %.6f s/epoch\n", mean(alone.Run(o.epochs(p, c)).Ranks).Span)
	default:
		fmt.Fprintln(w, "workers without a task do not assist others, because the timeline has no kernel with several chunks;",
			"record a run with --threads 1")
	}
}

// spent prints the cost of an epoch, as far as prices are known.
func (o *Options) spent(w io.Writer, c *Cluster, m Result) {
	hosts, functions := o.hostCost(c, m.Epoch), 0.0
	if f := c.Functions; f != nil {
		functions = m.USD
		fmt.Fprintf(w, "functions, an epoch: %.0f invocations, %.3f GB-seconds, %.6f USD, %.3f MB to them and %.3f MB back\n",
			m.Invocations, m.GBSeconds, m.USD, m.To/1e6, m.Back/1e6)
	}
	if hosts > 0 {
		fmt.Fprintf(w, "an epoch costs %.6f USD: hosts %.6f, functions %.6f\n", hosts+functions, hosts, functions)
	}
}

// failed prints the cost of failures.
func (o *Options) failed(w io.Writer, m Result, fails []float64) {
	if len(fails) == 0 {
		return
	}
	plain, _ := o.interrupted(m.Epoch, nil)
	seconds, again := o.interrupted(m.Epoch, fails)
	fmt.Fprintf(w, "%d epochs take %.3f s, and %.3f s with %d failures: %d epochs are trained again, and each start takes %v\n",
		o.RunEpochs, plain, seconds, len(fails), again, o.Restart)
}

// rule describes the source of the ranks' counts.
func (o *Options) rule(p *recordedRun, c *Cluster) string {
	switch {
	case o.Data != "":
		return "rows and counts of the shards in " + o.Data
	case c.Rows != nil:
		return "rows between ranks as recorded"
	case len(c.Ranks) == len(p.Ranks):
		return "ghosts spread evenly over their owners"
	}
	return fmt.Sprintf("work in proportion to 1/ranks, ghosts to ranks^-%g, spread evenly", o.GhostPower)
}

// mean returns the mean over ranks.
func mean(of []Use) (sum Use) {
	for _, u := range of {
		sum.add(u, 1/float64(len(of)))
	}
	return sum
}
