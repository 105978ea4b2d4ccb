package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"siafu/internal/cli/commandline"
	"siafu/lambda/deploy"
)

type lambdaCmd struct {
	Deploy lambdaDeployCmd `cmd:"" help:"Create or update the function in AWS Lambda."`
	Status lambdaStatusCmd `cmd:"" help:"Print the state of the function in AWS Lambda."`
	Remove lambdaRemoveCmd `cmd:"" help:"Delete the function and the role that deploy created."`
}

type lambdaDeployCmd struct {
	Options deploy.Options `embed:""`
}

func (c *lambdaDeployCmd) Run(ctx context.Context, io commandline.Console) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	return deploy.Deploy(ctx, c.Options, io.Out)
}

type lambdaStatusCmd struct {
	Options deploy.StatusOptions `embed:""`
}

func (c *lambdaStatusCmd) Run(ctx context.Context, io commandline.Console) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	return deploy.Status(ctx, c.Options, io.Out)
}

type lambdaRemoveCmd struct {
	Options deploy.RemoveOptions `embed:""`
}

func (c *lambdaRemoveCmd) Run(ctx context.Context, io commandline.Console) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	return deploy.Remove(ctx, c.Options, io.Out)
}

// untilInterrupted returns a context that ends at the first signal, so that the command can
// undo unfinished steps. A second signal ends the process.
func untilInterrupted(ctx context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
