package spot

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/table"
)

// Flags replace single inputs. Their fields have the names of Inputs; nil changes nothing.
type Flags struct {
	Depth           *int     `help:"Stages of a pipeline (P). 1 for data parallelism and for graphs."`
	Replicas        *int     `help:"Data-parallel pipelines (D)."`
	MinDepth        *int     `help:"Minimum stages of a pipeline that fits memory, for systems that change the depth."`
	Microbatches    *int     `help:"Microbatches of a pipeline per iteration."`
	Batch           *float64 `help:"Samples per iteration, over all pipelines. For full graphs, an epoch has one iteration."`
	Iteration       *float64 `help:"Seconds per iteration with all machines, without redundant work."`
	Redundancy      *float64 `help:"Relative time of redundant forward computation (Bamboo)."`
	Merged          *float64 `help:"Factor on the iteration while a machine runs two stages (Bamboo)."`
	Risk            *float64 `help:"Probability that the next loss is fatal, above which Bamboo reconfigures."`
	Pause           *float64 `help:"Seconds to recover lost state on a neighbour, or to detect a loss and rebuild a part (siafu)."`
	Reconfigure     *float64 `help:"Seconds of a reconfiguration without a restart."`
	Restart         *float64 `help:"Seconds of a restart from a checkpoint."`
	Startup         *float64 `help:"Seconds from the allocation of a machine until it can train."`
	CheckpointEvery *float64 `help:"Seconds between the begins of two checkpoints."`
	CheckpointTime  *float64 `help:"Seconds until a checkpoint is complete. Training continues meanwhile."`
	CheckpointStall *float64 `help:"Seconds per checkpoint in which training waits."`
	Notice          *float64 `help:"Seconds between notice and loss. AWS gives 120, GCP and Azure 30."`
	Move            *float64 `help:"Seconds to move the state of a machine to another one."`
	Copies          *float64 `help:"Relative time of storing state on other machines (siafu-copies)."`
	Parts           *int     `help:"Parts of the graph per requested machine (siafu)."`
	Price           *float64 `help:"Dollars per machine and hour."`
	PriceDemand     *float64 `help:"Dollars per hour of the same machine on demand."`
	Samples         *float64 `help:"Samples until training is complete. 0: train until the trace ends."`
}

// apply replaces the inputs that are given as flags.
func (f Flags) apply(in *Inputs) {
	from, to := reflect.ValueOf(f), reflect.ValueOf(in).Elem()
	for k := range from.NumField() {
		if !from.Field(k).IsNil() {
			to.FieldByName(from.Type().Field(k).Name).Set(from.Field(k).Elem())
		}
	}
}

// TraceOptions are the options of spot trace.
type TraceOptions struct {
	File   string `arg:"" optional:"" help:"Trace to read. Empty: generate a trace."`
	Output string `name:"output" short:"o" placeholder:"FILE" help:"File for the trace."`
	Format string `default:"events" help:"Format of --output. Values: events (lines ms,add|remove,node), instances (lines seconds,instances)."`
	JSON   bool   `name:"json" help:"Print the statistics as JSON."`

	GenerateOptions `kong:"embed"`
}

// Print reads or generates a trace, writes it to Output, and prints its statistics.
func (o TraceOptions) Print(w io.Writer) error {
	t, err := o.trace()
	if err != nil {
		return err
	}
	if o.Output != "" {
		if err := t.Write(o.Output, o.Format); err != nil {
			return err
		}
	}
	s := t.Statistics()
	if o.JSON {
		return table.JSON(w, s)
	}
	zones := "unknown"
	if s.Zones > 0 {
		zones = fmt.Sprintf("%d; all losses in one zone in %d of %d moments", s.Zones, s.OneZone, s.Moments)
	}
	_, err = fmt.Fprintf(w, `length      %.2f h
machines    %d at most, %.2f on average, %d added later
losses      %d machines at %d moments, %.2f per moment
per hour    %.2f %% of the machines; lowest hour %.2f %%, highest %.2f %%
zones       %s
`, s.Hours, s.Machines, s.MeanMachines, s.Added, s.Lost, s.Moments, s.LostPerMoment, s.PercentPerHour,
		s.LowestPercent, s.HighestPercent, zones)
	return err
}

func (o TraceOptions) trace() (*Trace, error) {
	if o.File != "" {
		return ReadTrace(o.File)
	}
	return Generate(o.GenerateOptions)
}

// SimulateOptions are the options of spot simulate.
type SimulateOptions struct {
	Trace   string   `arg:"" optional:"" help:"Trace to replay. Empty: random traces with --rate."`
	Rate    float64  `default:"0.1" help:"Probability that a machine is lost in an hour, for random traces."`
	Hours   float64  `default:"24" help:"Hours of a random trace, if --samples is 0."`
	Runs    int      `default:"100" help:"Random traces to average."`
	Zones   int      `default:"3" help:"Availability zones of random traces."`
	Seed    uint64   `default:"1" help:"Seed of the first random trace. The next ones have the next seeds."`
	Systems []string `help:"Systems to simulate. Values: bamboo, checkpoint, dropping, migration, varuna, oobleck, recycle, parcae, siafu-copies, siafu-restart. Empty: all."`
	Network string   `default:"bert" help:"Published inputs of a network. Values: resnet, vgg, alexnet, gnmt, bert, gpt."`
	Run     string   `placeholder:"DIR" help:"Run folder whose ranks and epoch time replace those of --network. A sample is an epoch. If the run has lost ranks or was resumed, its lost seconds replace --pause and --restart."`
	Inputs  string   `placeholder:"FILE" help:"JSON file with inputs, named as in the output of --json. They replace those of --network and --run."`
	JSON    bool     `name:"json" help:"Print inputs and results as JSON."`

	Flags `kong:"embed"`
}

// inputs returns the inputs: of the network, the run, the file and the flags, in this order. Measured is
// nil without a run.
func (o SimulateOptions) inputs() (in Inputs, m *Measured, err error) {
	if in, err = Named(o.Network); err != nil {
		return in, nil, err
	}
	if o.Run != "" {
		if m, err = Measure(o.Run); err != nil {
			return in, nil, err
		}
		m.apply(&in)
	}
	if o.Inputs != "" {
		if err := in.ReadInputs(o.Inputs); err != nil {
			return in, nil, err
		}
	}
	if o.apply(&in); o.MinDepth == nil {
		in.MinDepth = min(in.MinDepth, in.Depth)
	}
	return in, m, in.Validate()
}

// result is the output of --json.
type result struct {
	Inputs   Inputs      `json:"inputs"`
	Measured *Measured   `json:"measured,omitempty"`
	Trace    *Statistics `json:"trace,omitempty"`
	Rate     float64     `json:"rate,omitempty"`
	Runs     []Run       `json:"runs"`
}

// Print simulates the systems and prints a line for each.
func (o SimulateOptions) Print(w io.Writer) error {
	in, m, err := o.inputs()
	if err != nil {
		return err
	}
	systems, err := Select(o.Systems)
	if err != nil {
		return err
	}
	r := result{Inputs: in, Measured: m}
	if o.Trace != "" {
		err = o.replay(&r, systems)
	} else {
		err = o.random(&r, systems)
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return table.JSON(w, r)
	}
	if m != nil {
		fmt.Fprintln(w, m)
	}
	return printRuns(w, r.Runs)
}

func (o SimulateOptions) replay(r *result, systems []Entry) error {
	t, err := ReadTrace(o.Trace)
	if err != nil {
		return err
	}
	s := t.Statistics()
	r.Trace = &s
	for _, e := range systems {
		one := Simulate(r.Inputs, Source{Trace: t}, e.New())
		one.System = e.Name
		r.Runs = append(r.Runs, one)
	}
	return nil
}

func (o SimulateOptions) random(r *result, systems []Entry) error {
	if !(o.Rate >= 0 && o.Rate <= 1) || o.Runs < 1 || o.Runs > 100_000 || o.Zones < 1 || o.Zones > 100 ||
		!(o.Hours > 0 && o.Hours <= maxHours) {
		return fault.New(fault.Usage, op, "", "--rate=%g --runs=%d --zones=%d --hours=%g", o.Rate, o.Runs, o.Zones, o.Hours).
			Then("set a rate from 0 to 1, 1 to 100000 runs, 1 to 100 zones, and hours above 0")
	}
	r.Rate = o.Rate
	for _, e := range systems {
		r.Runs = append(r.Runs, Repeat(r.Inputs, e, Random{o.Rate, o.Zones, o.Hours, o.Seed, o.Runs}))
	}
	return nil
}

// printRuns prints a table of runs. Fractions of time are in percent.
func printRuns(w io.Writer, runs []Run) error {
	columns := []string{"system", "samples/s|%.2f", "$/h|%.2f", "value|%.3f", "machines|%.2f", "fatal|%.2f",
		"restarts|%.1f", "reconf.|%.1f"}
	short := strings.NewReplacer("reconfiguring", "reconf.", "recovering", "recov.", "restarting", "restart")
	for _, name := range PhaseNames {
		columns = append(columns, short.Replace(name)+"|%.1f %%")
	}
	t := table.Left(columns...)
	for _, r := range runs {
		row := []any{r.System, r.Throughput, r.DollarsPerHour, r.Value, r.Machines, r.Fatal, r.Restarts, r.Reconfigurations}
		for _, name := range PhaseNames {
			row = append(row, 100*r.Fractions[name])
		}
		t.Add(row...)
	}
	return t.Text(w)
}
