package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/ranks/plan"
	"siafu/ranks/runfolder"
	"siafu/ranks/simulate"
	"siafu/ranks/trace"
	"siafu/ranks/world/mpi"
	"siafu/slurm/hosts"
)

// LinksOptions are the options of bench links.
type LinksOptions struct {
	Data         string   `arg:"" help:"Dataset folder."`
	Hosts        int      `default:"4" help:"Number of emulated hosts, with one rank each."`
	Rates        []string `default:"10gbit,1gbit,200mbit" help:"Link rates of the hosts."`
	Codecs       []string `default:"none,s2,zstd" help:"Codecs to measure."`
	Partitioners []string `default:"hash,fennel" help:"Partitioners to measure."`
	Epochs       int      `default:"5" help:"Epochs of each run. The first epoch is not counted."`
	Turns        int      `default:"2" help:"Repetitions of each run, interleaved with the other runs."`
	JSON         bool     `name:"json" help:"Print a JSON array instead of a table."`
	Train        []string `arg:"" optional:"" help:"Flags of train, after --."`
}

// LinkRun is the measured cost of runs over one link with one partitioner and codec.
type LinkRun struct {
	Link        string         `json:"link"`
	Measured    hosts.Measured `json:"measured"`
	Partitioner string         `json:"partitioner"`
	Codec       string         `json:"codec"`
	Mode        string         `json:"mode"`
	Epoch       float64        `json:"epoch_seconds"`   // median of all repetitions' epochs except the first
	Exposed     float64        `json:"exposed_seconds"` // part of it spent waiting for rows, on the rank that waits most
	Raw         int64          `json:"ghost_bytes_raw"` // per epoch
	Sent        int64          `json:"ghost_bytes_sent"`
	Ratio       float64        `json:"ratio"`    // raw to sent
	SpeedUp     float64        `json:"speed_up"` // over codec none in --mode nopipe on the same link and partition

	rate            float64 // bytes a second
	epochs, exposed []float64
}

// Run trains under mpirun on hosts of this machine, over each link with each partitioner and
// codec, and compares the time of an epoch with one without overlap and compression. All
// combinations are interleaved, so that other load on the machine affects all alike. It prints
// this machine above a table.
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
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(runs)
	}
	const head = "link\tmeasured Mbit/s\tlatency µs\tpartitioner\tcodec\tmode\ts/epoch\texposed s\traw MB\tsent MB\tratio\tspeed-up"
	return printTable(w, head, runs, func(r *LinkRun) string {
		return fmt.Sprintf("%s\t%.0f\t%.0f\t%s\t%s\t%s\t%.4f\t%.4f\t%.2f\t%.2f\t%.2f\t%.2f",
			r.Link, r.Measured.Bandwidth*8/1e6, r.Measured.Latency*1e6, r.Partitioner, r.Codec, r.Mode,
			r.Epoch, r.Exposed, float64(r.Raw)/1e6, float64(r.Sent)/1e6, r.Ratio, r.SpeedUp)
	})
}

const opLinks = "bench links"

// runs checks options and lists the runs.
func (o LinksOptions) runs() (runs []*LinkRun, err error) {
	if !mpi.Available() {
		return nil, fault.New(fault.Config, opLinks, "", "this build has no MPI").Then(`install libopenmpi-dev and openmpi-bin ("make deps") and run "make build"`)
	}
	if o.Epochs < 2 || o.Turns < 1 || o.Hosts < 2 {
		return nil, fault.New(fault.Usage, opLinks, "", "--epochs=%d --turns=%d --hosts=%d", o.Epochs, o.Turns, o.Hosts).
			Then("set 2 epochs, 1 turn and 2 hosts or more")
	}
	for _, link := range o.Rates {
		rate, err := plan.Bandwidth(link)
		if err != nil {
			return nil, err
		}
		for _, p := range o.Partitioners {
			runs = append(runs, &LinkRun{Link: link, Partitioner: p, Codec: "none", Mode: "nopipe", rate: rate})
			for _, c := range o.Codecs {
				runs = append(runs, &LinkRun{Link: link, Partitioner: p, Codec: c, Mode: "pipe", rate: rate})
			}
		}
	}
	return runs, nil
}

// once trains once.
func (o LinksOptions) once(ctx context.Context, site *trials.Site, r *LinkRun) error {
	var err error
	if r.Measured, err = site.Link(o.Hosts, r.rate); err != nil {
		return err
	}
	view, err := site.View(o.Data, r.Partitioner)
	if err != nil {
		return err
	}
	timeline := site.Path("trace.json")
	run, err := site.Over(ctx, view, append(slices.Clone(o.Train), "--epochs", strconv.Itoa(o.Epochs),
		"--partitioner", r.Partitioner, "--codec", r.Codec, "--mode", r.Mode, "--trace", timeline)...)
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
	return nil
}

// take adds a run's epochs except the first.
func (r *LinkRun) take(run *runfolder.Run, f *trace.File) {
	waited := map[[2]int]float64{} // by epoch and rank
	for _, e := range f.Events {
		if slices.Contains(communication, e.Task) {
			waited[[2]int{e.Epoch, e.Rank}] += e.Wait.Seconds()
		}
	}
	for _, e := range run.Epochs[1:] {
		r.epochs = append(r.epochs, e.Seconds)
		r.Raw, r.Sent = e.GhostBytesRaw, e.GhostBytesSent
		most := 0.0
		for rank := range run.Summary.Ranks {
			most = max(most, waited[[2]int{e.Epoch, rank}])
		}
		r.exposed = append(r.exposed, most)
	}
}

// summarize takes medians and compares.
func summarize(runs []*LinkRun) {
	var base *LinkRun
	for _, r := range runs {
		r.Epoch, r.Exposed = simulate.Median(r.epochs), simulate.Median(r.exposed)
		r.Ratio = float64(r.Raw) / float64(max(r.Sent, 1))
		if r.Mode == "nopipe" { // the first of its link and partition
			base = r
		}
		r.SpeedUp = base.Epoch / r.Epoch
	}
}
