package cli

import (
	"siafu/cli/commandline"
	"siafu/lambda/bill"
	"siafu/slurm/spot"
)

type spotCmd struct {
	Trace    spotTraceCmd    `cmd:"" help:"Generate a trace of spot machines, or print the statistics of one."`
	Simulate spotSimulateCmd `cmd:"" help:"Compare training systems on spot machines by simulation."`
}

type spotTraceCmd struct {
	Options spot.TraceOptions `embed:""`
}

func (c *spotTraceCmd) Run(io commandline.Console) error { return c.Options.Print(io.Out) }

type spotSimulateCmd struct {
	Instance string               `help:"Instance type whose spot and on-demand prices replace --price and --price-demand, such as p3.2xlarge."`
	Options  spot.SimulateOptions `embed:""`
}

func (c *spotSimulateCmd) Run(io commandline.Console) error {
	if c.Instance != "" {
		price, demand, err := bill.Spot(c.Instance)
		if err != nil {
			return err
		}
		c.Options.Price, c.Options.PriceDemand = &price, &demand
	}
	return c.Options.Print(io.Out)
}
