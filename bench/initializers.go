package bench

import (
	"context"
	"fmt"
	"io"
	"math"

	"siafu/bench/trials"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/ranks/config"
)

// InitializersOptions are the options of bench initializers.
type InitializersOptions struct {
	Data         string   `required:"" placeholder:"DIR" help:"Folder with the raw graphs NAME or NAME.tar.zst."`
	Work         string   `default:"build/initializers" placeholder:"DIR" help:"Folder for imported datasets."`
	Graphs       []string `default:"cora,citeseer,amazon-photo,coauthor-cs,tolokers,fb100-berkeley13-year" help:"Graphs to train on, with unscaled features."`
	Models       []string `default:"gcn,sage,gin,gat,mlp" help:"Networks to train."`
	Initializers []string `default:"xavier,he,torch,small-logits" help:"Random initialisers to compare."`
	Hidden       []int    `default:"16,64" help:"Widths of the hidden layer."`
	Seeds        int      `default:"5" help:"Number of seeds to average, from 1."`
}

// InitializerResult has the runs of one network with one initialiser.
type InitializerResult struct {
	Graph, Model, Initializer string
	Hidden, Seeds             int
	Mean, Std                 float64 // of test accuracy at the best validation
	Stuck                     int     // number of seeds that learned nothing
}

// A network has learned something if its loss is below stuckShare times the loss of guessing
// by class frequencies.
const stuckShare = 0.99

// Run runs Initializers only for its table.
func (o InitializersOptions) Run(ctx context.Context, w io.Writer) error {
	_, err := Initializers(ctx, o, w)
	return err
}

// Initializers trains every network on every graph, with the defaults of train except the
// width, and prints a line for each with all initialisers.
func Initializers(ctx context.Context, o InitializersOptions, w io.Writer) ([]InitializerResult, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "%-22s %-5s %6s", "graph", "model", "hidden")
	for _, name := range o.Initializers {
		fmt.Fprintf(w, "  %-22s", name)
	}
	fmt.Fprintln(w)
	var results []InitializerResult
	for _, name := range o.Graphs {
		data, err := importRaw("bench initializers", o.Data, o.Work, AccuracyCase{Graph: name})
		if err != nil {
			return results, err
		}
		guessing, err := guessingLoss(data)
		if err != nil {
			return results, err
		}
		for _, kind := range o.Models {
			for _, hidden := range o.Hidden {
				line, err := o.line(ctx, InitializerResult{Graph: name, Model: kind, Hidden: hidden, Seeds: o.Seeds}, data, guessing)
				if err != nil {
					return results, err
				}
				fmt.Fprintf(w, "%-22s %-5s %6d", name, kind, hidden)
				for _, r := range line {
					fmt.Fprintf(w, "  %-22s", r)
				}
				fmt.Fprintln(w)
				results = append(results, line...)
			}
		}
	}
	return results, nil
}

// validate returns, before training, the errors that training would return.
func (o InitializersOptions) validate() error {
	for _, kind := range o.Models {
		for _, name := range o.Initializers {
			c := config.Defaults()
			c.Model, c.Initializer = kind, name
			if err := c.Validate(); err != nil {
				return err
			}
		}
	}
	if o.Seeds < 1 {
		return fault.New(fault.Usage, "bench initializers", "", "--seeds=%d", o.Seeds).Then("set 1 or more")
	}
	return nil
}

func (o InitializersOptions) line(ctx context.Context, of InitializerResult, data string, guessing float64) (line []InitializerResult, err error) {
	e := &experiment{op: "bench initializers", data: data, config: config.Defaults()}
	e.config.Ranks, e.config.Model, e.config.Hidden, e.config.CheckpointEvery = 1, of.Model, of.Hidden, "off"
	for _, name := range o.Initializers {
		e.add(name, func(c *config.Config, turn int) { c.Initializer, c.Seed = name, uint64(turn+1) })
	}
	if err := e.train(ctx, "seeds", o.Seeds); err != nil {
		return nil, err
	}
	for _, s := range e.settings {
		r := of
		r.Initializer = s.name
		r.Mean, r.Std = trials.MeanStd(s.each(testAccuracy))
		for _, run := range s.runs {
			if run.Summary.FinalLoss >= stuckShare*guessing {
				r.Stuck++
			}
		}
		line = append(line, r)
	}
	return line, nil
}

func (r InitializerResult) String() string {
	text := fmt.Sprintf("%.2f ± %.2f", 100*r.Mean, 100*r.Std)
	if r.Stuck > 0 {
		text += fmt.Sprintf(" (%d stuck)", r.Stuck)
	}
	return text
}

// guessingLoss returns the least loss of a network without input: the entropy of the classes
// of training vertices.
func guessingLoss(data string) (float64, error) {
	d, err := graph.Open(data)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	counts, all := make([]float64, d.Meta.Classes), 0.0
	for v, class := range d.Labels {
		if d.Split[v] == graph.SplitTrain && class >= 0 {
			counts[class]++
			all++
		}
	}
	entropy := 0.0
	for _, n := range counts {
		if n > 0 {
			entropy -= n / all * math.Log(n/all)
		}
	}
	return entropy, nil
}
