package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/ranks/plan"
	"siafu/ranks/runfolder"
	"siafu/ranks/trace"
	"siafu/slurm/hosts"
)

// LinksOptions are the options of bench links.
type LinksOptions struct {
	Data         string   `arg:"" help:"Dataset folder."`
	Hosts        int      `default:"4" help:"Number of emulated hosts, with one rank each."`
	Rates        []string `default:"10gbit,1gbit,200mbit" help:"Link rates of the hosts."`
	Codecs       []string `default:"none,s2,zstd" help:"Codecs to measure."`
	Partitioners []string `default:"hash,fennel" help:"Partitioners to measure."`
	Variants     []string `sep:";" placeholder:"NAME=FLAGS" help:"Settings of train to compare, in place of codecs, separated by semicolons. Example: 'received=--recompute-ghosts none;computed=--recompute-ghosts all'. The first one is the base of the speed-up."`
	Epochs       int      `default:"5" help:"Epochs of each run. The first epoch is not counted."`
	Turns        int      `default:"2" help:"Repetitions of each run, interleaved with the other runs."`
	JSON         bool     `name:"json" help:"Print a JSON array instead of a table."`
	Train        []string `arg:"" optional:"" help:"Flags of train, after --."`
}

// LinkRun is the measured cost of runs over one link with one partitioner and codec or variant.
type LinkRun struct {
	Link        string         `json:"link"`
	Measured    hosts.Measured `json:"measured"`
	Partitioner string         `json:"partitioner"`
	Variant     string         `json:"variant,omitempty"` // name of the setting, with --variants
	Codec       string         `json:"codec"`
	Mode        string         `json:"mode"`
	Epoch       float64        `json:"epoch_seconds"`         // median of all repetitions' epochs except the first
	Least       float64        `json:"epoch_seconds_minimum"` // least median of one repetition
	Exposed     float64        `json:"exposed_seconds"`       // part of Epoch spent waiting for rows, on the rank that waits most
	Raw         int64          `json:"ghost_bytes_raw"`       // per epoch
	Sent        int64          `json:"ghost_bytes_sent"`
	Ratio       float64        `json:"ratio"`    // raw to sent
	SpeedUp     float64        `json:"speed_up"` // over the first run on the same link and partition

	// Interface has the bytes that all hosts' network interfaces sent in an epoch, the median
	// of the repetitions; nil if they were not counted, for the given reason.
	Interface *float64 `json:"interface_bytes,omitempty"`
	Uncounted string   `json:"interface_bytes_missing,omitempty"`

	rate             float64  // bytes a second
	flags            []string // of train, of the codec or variant
	epochs, exposed  []float64
	medians, counted []float64 // of epochs and of interfaces' bytes, one for each repetition
}

// Run trains under mpirun on hosts of this machine, over each link with each partitioner and
// codec, and compares the time of an epoch with one without overlap and compression. Variants
// replace the codecs, and are compared with the first one. All combinations are interleaved, so
// that other load on the machine affects all alike. It prints this machine above a table.
func (o LinksOptions) Run(ctx context.Context, w io.Writer) error {
	if !o.JSON {
		trials.Machine(w)
	}
	runs, err := o.runs()
	if err != nil {
		return err
	}
	err = trials.OnSite(ctx, opLinks, func(ctx context.Context, site *trials.Site) error {
		for range o.Turns {
			for _, r := range runs {
				if err := o.once(ctx, site, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	summarize(runs)
	if o.JSON {
		return table.JSON(w, runs)
	}
	return printLinks(w, runs)
}

// printLinks prints the table, and why interfaces were not counted.
func printLinks(w io.Writer, runs []*LinkRun) error {
	t := table.Right("link", "measured Mbit/s|%.0f", "latency µs|%.0f", "partitioner", "variant", "codec", "mode",
		"s/epoch|%.4f", "minimum|%.4f", "exposed s|%.4f", "raw MB|%.2f", "sent MB|%.2f", "interface MB|%.2f", "ratio|%.2f", "speed-up|%.2f")
	uncounted := ""
	for _, r := range runs {
		sent := any("-")
		if r.Interface != nil {
			sent = *r.Interface / 1e6
		}
		uncounted = cmp.Or(uncounted, r.Uncounted)
		t.Add(r.Link, r.Measured.Bandwidth*8/1e6, r.Measured.Latency*1e6, r.Partitioner, r.Variant, r.Codec, r.Mode,
			r.Epoch, r.Least, r.Exposed, float64(r.Raw)/1e6, float64(r.Sent)/1e6, sent, r.Ratio, r.SpeedUp)
	}
	if runs[0].Variant == "" {
		t = t.Without("variant")
	}
	err := t.Text(w)
	if err == nil && uncounted != "" {
		_, err = fmt.Fprintf(w, "interface MB: some runs were not counted: %s\n", uncounted)
	}
	return err
}

const opLinks = "bench links"

// runs checks options and lists the runs.
func (o LinksOptions) runs() (runs []*LinkRun, err error) {
	if err := trials.RequireMPI(opLinks); err != nil {
		return nil, err
	}
	if o.Epochs < 2 || o.Turns < 1 || o.Hosts < 2 {
		return nil, fault.New(fault.Usage, opLinks, "", "--epochs=%d --turns=%d --hosts=%d", o.Epochs, o.Turns, o.Hosts).
			Then("set 2 epochs, 1 turn and 2 hosts or more")
	}
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	for _, link := range o.Rates {
		rate, err := plan.Bandwidth(link)
		if err != nil {
			return nil, err
		}
		for _, p := range o.Partitioners {
			for _, s := range settings {
				s.Link, s.Partitioner, s.rate = link, p, rate
				runs = append(runs, &s)
			}
		}
	}
	if len(runs) == 0 {
		return nil, fault.New(fault.Usage, opLinks, "", "--rates=%v --partitioners=%v", o.Rates, o.Partitioners).
			Then("set at least one of each")
	}
	return runs, nil
}

// settings returns the variants, or the codecs after --codec none --mode nopipe, as runs without
// a link.
func (o LinksOptions) settings() (list []LinkRun, err error) {
	for _, text := range o.Variants {
		name, flags, ok := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.HasPrefix(name, "-") {
			return nil, fault.New(fault.Usage, opLinks, "", "--variants has %q", text).
				Then("write NAME=FLAGS, and semicolons between variants: 'received=--recompute-ghosts " +
					"none;computed=--recompute-ghosts all'")
		}
		if slices.ContainsFunc(list, func(r LinkRun) bool { return r.Variant == name }) {
			return nil, fault.New(fault.Usage, opLinks, "", "--variants has the name %q twice", name).Then("choose another name")
		}
		list = append(list, LinkRun{Variant: name, flags: strings.Fields(flags)})
	}
	if len(list) > 0 {
		return list, nil
	}
	add := func(codec, mode string) {
		list = append(list, LinkRun{Codec: codec, Mode: mode, flags: []string{"--codec", codec, "--mode", mode}})
	}
	add("none", "nopipe")
	for _, c := range o.Codecs {
		add(c, "pipe")
	}
	return list, nil
}

func (o LinksOptions) once(ctx context.Context, site *trials.Site, r *LinkRun) error {
	var err error
	if r.Measured, err = site.Link(o.Hosts, r.rate); err != nil {
		return err
	}
	timeline := site.Path("trace.json")
	flags := slices.Concat(site.Shards(o.Data, r.Partitioner), o.Train,
		[]string{"--epochs", strconv.Itoa(o.Epochs), "--partitioner", r.Partitioner}, r.flags)
	run, sent, err := site.Over(ctx, o.Data, append(flags, "--trace", timeline)...)
	if err != nil {
		return err
	}
	if len(run.Epochs) < 2 {
		return fault.New(fault.Usage, opLinks, "", "a run ended after %d epochs (%s)", len(run.Epochs), run.Summary.StoppedBy).
			Then("leave out the flags that end it")
	}
	f, err := trace.Read(timeline)
	if err != nil {
		return err
	}
	r.take(run, f)
	if r.Uncounted = cmp.Or(r.Uncounted, sent.Missing); sent.Missing == "" {
		r.counted = append(r.counted, sent.Epoch)
	}
	return nil
}

// take adds a run's epochs except the first.
func (r *LinkRun) take(run *runfolder.Run, f *trace.File) {
	if r.Variant != "" {
		r.Codec, r.Mode = run.Summary.Codec, run.Summary.Mode
	}
	var turn []float64
	waited := map[[2]int]float64{} // by epoch and rank
	for _, e := range f.Events {
		if slices.Contains(communication, e.Task) {
			waited[[2]int{e.Epoch, e.Rank}] += e.Wait.Seconds()
		}
	}
	for _, e := range run.Epochs[1:] {
		turn = append(turn, e.Seconds)
		r.Raw, r.Sent = e.GhostBytesRaw, e.GhostBytesSent
		most := 0.0
		for rank := range run.Summary.Ranks {
			most = max(most, waited[[2]int{e.Epoch, rank}])
		}
		r.exposed = append(r.exposed, most)
	}
	r.epochs, r.medians = append(r.epochs, turn...), append(r.medians, runfolder.Median(turn))
}

// summarize takes medians, and compares with the first run on the same link and partition.
func summarize(runs []*LinkRun) {
	var base *LinkRun
	for _, r := range runs {
		r.Epoch, r.Least, r.Exposed = runfolder.Median(r.epochs), slices.Min(r.medians), runfolder.Median(r.exposed)
		r.Ratio = float64(r.Raw) / float64(max(r.Sent, 1))
		if len(r.counted) > 0 {
			sent := runfolder.Median(r.counted)
			r.Interface = &sent
		}
		if base == nil || base.Link != r.Link || base.Partitioner != r.Partitioner {
			base = r
		}
		r.SpeedUp = base.Epoch / r.Epoch
	}
}
