package bench

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// LambdaOptions are the options of bench lambda. Training flags are train's, including those
// of functions.
type LambdaOptions struct {
	Data   string        `arg:"" help:"Dataset folder."`
	Turns  int           `default:"3" help:"Runs of each row, interleaved. The fastest epoch of all runs counts."`
	Config config.Config `embed:""`
}

// variant is a line of a table: a variation of the requested run.
type variant struct {
	name string
	set  func(*config.Config)

	seconds float64 // of the fastest epoch
	last    *runfolder.Run
}

// Run prints two tables. The first one has the variants of figure 10 and of §7.6 of Dorylus
// (OSDI'21): tensor work on the CPU and in functions, pipelined, without pipelining (no-pipe)
// and in bounded asynchrony with s=0. The second one omits each optimisation of §6 separately,
// and has codecs.
func (o LambdaOptions) Run(ctx context.Context, w io.Writer) error {
	if o.Turns < 1 || o.Config.Epochs < 2 {
		return fault.New(fault.Usage, "bench lambda", "", "--turns=%d --epochs=%d", o.Turns, o.Config.Epochs).Then("measure 1 turn or more of 2 epochs or more")
	}
	if o.Config.Instance == "" {
		return fault.New(fault.Usage, "bench lambda", "", "the price of servers is unknown").Then("give --instance TYPE or dollars per hour")
	}
	o.Config.Tensor = config.TensorLambda
	if o.Config.Lambda == "" {
		o.Config.Lambda = config.LambdaLocal
	}
	cpu := func(mode string) func(*config.Config) {
		return func(c *config.Config) {
			*c = c.OnCPU()
			c.Mode = mode
		}
	}
	mode := func(mode string) func(*config.Config) { return func(c *config.Config) { c.Mode = mode } }
	variants := []variant{
		{name: "CPU, pipe", set: cpu("pipe")},
		{name: "CPU, no-pipe", set: cpu("nopipe")},
		{name: "functions, pipe", set: mode("pipe")},
		{name: "functions, no-pipe", set: mode("nopipe")},
		{name: "functions, async s=0", set: mode("async")},
	}
	without := func(what string) variant {
		return variant{name: "without " + what, set: func(c *config.Config) { c.LambdaWithout = what }}
	}
	through := func(codec string) variant {
		return variant{name: "codec " + codec, set: func(c *config.Config) { c.LambdaCodec = codec }}
	}
	forms := []variant{
		{name: "as they are", set: func(*config.Config) {}},
		without(config.Fusion), without(config.Rematerialisation), without(config.Streaming),
		without(config.Fusion + "," + config.Rematerialisation + "," + config.Streaming),
		through("s2"), through("bf16"), through("int8"),
	}
	if err := o.table(ctx, w, "tensor work on", variants); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return o.table(ctx, w, "tasks for functions", forms)
}

// table trains all variants, interleaved, and prints a line for each.
func (o LambdaOptions) table(ctx context.Context, w io.Writer, title string, ways []variant) error {
	for range o.Turns {
		for i := range ways {
			if err := ways[i].run(ctx, o); err != nil {
				return err
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\ts/epoch\tto the first\tinvocations/epoch\tMB to them\tMB back\tGB-s/epoch\tfunctions $/epoch\tservers $/epoch\tvalue\t\n", title)
	for i := range ways {
		ways[i].print(t, &ways[0])
	}
	return t.Flush()
}

func (l *variant) run(ctx context.Context, o LambdaOptions) error {
	c := o.Config
	l.set(&c)
	c.Out, c.CheckpointEvery, c.EvalEvery = "", "off", 0
	r, err := trial(ctx, "bench lambda", o.Data, c)
	if err != nil {
		return err
	}
	for _, e := range r.Epochs[1:] { // memory is touched, and functions are started, in the first one
		if l.last == nil || e.Seconds < l.seconds {
			l.seconds, l.last = e.Seconds, r
		}
	}
	return nil
}

// print prints the line. A run's cost, including the final evaluation, is divided by its
// epochs.
func (l *variant) print(w io.Writer, first *variant) {
	s := l.last.Summary
	n := float64(s.Epochs)
	fmt.Fprintf(w, "%s\t%.4f\t%.2f\t%.0f\t%.2f\t%.2f\t%.3f\t%.3g\t%.3g\t%.3g\t\n", l.name, l.seconds, l.seconds/first.seconds,
		float64(s.LambdaInvocations)/n, float64(s.LambdaBytesSent)/1e6/n, float64(s.LambdaBytesReceived)/1e6/n,
		s.LambdaGBSeconds/n, s.LambdaUSD/n, s.ServerUSD/n, l.value()/first.value())
}

// value returns 1/(T×C) of an epoch, where T is its time in seconds and C the dollars of its
// functions and of servers for this time.
func (l *variant) value() float64 {
	s := l.last.Summary
	hosts := s.ServerUSD / s.TotalSeconds * l.seconds
	return 1 / (l.seconds * (hosts + s.LambdaUSD/float64(s.Epochs)))
}
