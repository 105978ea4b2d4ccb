package dorylus

import (
	"context"
	"time"

	"github.com/alecthomas/kong"

	"siafu/bench/trials"
	"siafu/bench/yardstick"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// timeRivals returns the seconds of an epoch of the fastest installed one of PyTorch, PyTorch
// Geometric and DGL: with the same graph, layers and initial weights, in one process with all
// processors. Their losses are siafu's (bench epoch --yardstick compares them), and so are
// their accuracies.
func (b *bench) timeRivals(ctx context.Context, g *graphOf, model string) (timed, error) {
	return b.fastest(ctx, backend{name: "DGL (non-sampling)"}, []trials.Trial{{Data: g.Data, Ranks: 1, Flags: append(b.flags(model), "yardstick")}}, b.rival)
}

// pytorch is a runner of the yardstick's rivals.
type pytorch struct{}

// repeats is the duration of a rival's training.
const repeats = 5 * time.Second

func (pytorch) Run(ctx context.Context, t trials.Trial, _ string) (*trials.Result, error) {
	c, err := parsed(t.Flags[:len(t.Flags)-1])
	if err != nil {
		return nil, err
	}
	d, err := graph.Open(t.Data)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	training, err := yardstick.TrainingOf(c, d)
	if err != nil {
		return nil, err
	}
	lab, err := yardstick.NewLab()
	if err != nil {
		return nil, err
	}
	defer lab.Close()
	r := &trials.Result{Trial: t, Load: trials.Load()}
	var lacking error
	for _, v := range append(training.Variants(d), training.Libraries(d)...) {
		name, seconds, _, err := lab.Train(ctx, d, training, v, repeats)
		switch {
		case fault.KindOf(err) == fault.Missing && err != nil:
			lacking = err
		case err != nil:
			return nil, err
		case r.Epochs == nil || seconds < r.Epochs[1].Seconds:
			r.Version, r.Epochs = name, []runfolder.Epoch{{Seconds: seconds}, {Seconds: seconds}}
		}
	}
	if r.Epochs == nil {
		return nil, lacking
	}
	return r, nil
}

// parsed returns the configuration of train's flags.
func parsed(flags []string) (c config.Config, err error) {
	err = parse(&c, flags...)
	return c, err
}

// parse takes a command line into the struct that drives its flags.
func parse(options any, line ...string) error {
	parser, err := kong.New(options, config.Variables())
	if err == nil {
		_, err = parser.Parse(line)
	}
	if err != nil {
		return fault.New(fault.Usage, op, "", "%v", err)
	}
	return nil
}
