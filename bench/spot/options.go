package spot

import (
	"context"
	"fmt"
	"io"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/slurm/spot"
)

const op = "bench spot"

// Options are the options of bench spot.
type Options struct {
	Runs  int      `default:"1000" help:"Simulations per point of tables 3.3 and 3.4. Other parts use a tenth, at least one."`
	Zones int      `default:"3" help:"Availability zones."`
	Seed  uint64   `default:"1" help:"Seed of the first simulation."`
	HTML  string   `name:"html" placeholder:"FILE" help:"HTML file for the tables and charts, self-contained."`
	Only  []string `help:"Tables and figures to create. Values: figure3.2, table3.1, table3.2, table3.3, table3.4, figure3.3, figure3.4, figure3.11, figure3.12, table3.5, table3.6, table3.7, figure3.13, figure3.14, failures, systems, pause, pipelines. Empty: all but pause and pipelines, which train."`
	Times string   `placeholder:"FILE" help:"JSON file with measured seconds of a network's layers: name, stages, microbatches, forward, backward, and optionally transfer, detection, preparation and overlap. It is a column of table3.5 and figure3.13, and rows of figure3.14."`

	PauseOptions `embed:""`
}

// Run makes the selected parts and writes each to w when it is finished.
func (o Options) Run(ctx context.Context, w io.Writer) error {
	b, err := o.Book()
	if err != nil {
		return err
	}
	origin := trials.Origin("in parentheses, except ranges such as (0.9 to 1.1), and in columns named paper")
	fmt.Fprint(w, origin)
	return trials.Print(ctx, w, op, origin, o.HTML, b)
}

// Book returns the selected parts.
func (o Options) Book() (*trials.Book, error) {
	if o.Runs < 1 || o.Runs > 100_000 || o.Zones < 1 || o.Zones > 100 {
		return nil, fault.New(fault.Usage, op, "", "--runs=%d --zones=%d", o.Runs, o.Zones).Then("set 1 to 100000 runs and 1 to 100 zones")
	}
	b := &trials.Book{Name: "Bamboo", Title: "Bamboo's simulations of spot machines", Keys: keys(),
		Parts: o.parts(), Archive: &trials.Archive{}}
	return b, b.Select(op, o.Only, o.HTML)
}

// few returns the runs of parts other than tables 3.3 and 3.4.
func (o Options) few() int { return max(o.Runs/10, 1) }

func keys() (list []string) {
	for _, e := range spot.Systems() {
		list = append(list, e.Name)
	}
	return append(list, "on demand")
}
