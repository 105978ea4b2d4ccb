package bench

import (
	"context"
	"fmt"
	"io"
	"math"

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

// Run prints two tables. The first one has the variants of figure 10 and of §7.6 of Dorylus
// (OSDI'21): tensor work on the CPU and in functions, pipelined, without pipelining (no-pipe)
// and in bounded asynchrony with s=0. The second one omits each optimisation of §6 separately,
// and has codecs.
func (o LambdaOptions) Run(ctx context.Context, w io.Writer) error {
	if o.Config.Epochs < 2 {
		return fault.New(fault.Usage, "bench lambda", "", "--epochs=%d", o.Config.Epochs).Then("measure 2 or more")
	}
	if o.Config.Instance == "" {
		return fault.New(fault.Usage, "bench lambda", "", "the price of servers is unknown").
			Then("give --instance TYPE or dollars per hour")
	}
	o.Config.Tensor = config.TensorLambda
	if o.Config.Lambda == "" {
		o.Config.Lambda = config.LambdaLocal
	}
	at := o.experiment("tensor work on")
	mode := func(mode string, cpu bool) func(*config.Config, int) {
		return func(c *config.Config, _ int) {
			if cpu {
				*c = c.OnCPU()
			}
			c.Mode = mode
		}
	}
	at.add("CPU, pipe", mode("pipe", true))
	at.add("CPU, no-pipe", mode("nopipe", true))
	at.add("functions, pipe", mode("pipe", false))
	at.add("functions, no-pipe", mode("nopipe", false))
	at.add("functions, async s=0", mode("async", false))
	tasks := o.experiment("tasks for functions")
	tasks.add("as they are", func(*config.Config, int) {})
	for _, what := range []string{config.Fusion, config.Rematerialisation, config.Streaming,
		config.Fusion + "," + config.Rematerialisation + "," + config.Streaming} {
		tasks.add("without "+what, func(c *config.Config, _ int) { c.LambdaWithout = what })
	}
	for _, codec := range []string{"s2", "bf16", "int8"} {
		tasks.add("codec "+codec, func(c *config.Config, _ int) { c.LambdaCodec = codec })
	}
	for _, e := range []*experiment{at, tasks} {
		if e == tasks {
			fmt.Fprintln(w)
		}
		if err := e.train(ctx, "turns", o.Turns); err != nil {
			return err
		}
		if err := e.print(w); err != nil {
			return err
		}
	}
	return nil
}

// experiment returns a table of epochs. A run's cost, including the final evaluation, is
// divided by its epochs.
func (o LambdaOptions) experiment(title string) *experiment {
	e := &experiment{op: "bench lambda", data: o.Data, config: o.Config,
		columns: []string{title, "s/epoch|%.4f", "to the first|%.2f", "invocations/epoch|%.0f", "MB to them|%.2f", "MB back|%.2f",
			"GB-s/epoch|%.3f", "functions $/epoch|%.3g", "servers $/epoch|%.3g", "value|%.3g"},
		row: func(s, first *setting) []any {
			seconds, run := s.fastest()
			base, _ := first.fastest()
			n := float64(run.Epochs)
			return []any{s.name, seconds, seconds / base,
				float64(run.LambdaInvocations) / n, float64(run.LambdaBytesSent) / 1e6 / n, float64(run.LambdaBytesReceived) / 1e6 / n,
				run.LambdaGBSeconds / n, run.LambdaUSD / n, run.ServerUSD / n, s.value() / first.value()}
		}}
	e.config.Out, e.config.CheckpointEvery, e.config.EvalEvery = "", "off", 0
	return e
}

// fastest returns the seconds of the fastest epoch of all runs, and the summary of its run. It
// omits the first epochs, in which memory is touched and functions are started.
func (s *setting) fastest() (seconds float64, run runfolder.Summary) {
	seconds = math.Inf(1)
	for _, r := range s.runs {
		if x := fastest(r.Epochs[1:]); x < seconds {
			seconds, run = x, r.Summary
		}
	}
	return seconds, run
}

// value returns 1/(T×C) of an epoch, where T is its time in seconds and C the dollars of its
// functions and of servers for this time.
func (s *setting) value() float64 {
	seconds, run := s.fastest()
	hosts := run.ServerUSD / run.TotalSeconds * seconds
	return 1 / (seconds * (hosts + run.LambdaUSD/float64(run.Epochs)))
}
