package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"siafu/cli/commandline"
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
	return untilInterrupted(ctx, deploy.Deploy, c.Options, io)
}

type lambdaStatusCmd struct {
	Options deploy.StatusOptions `embed:""`
}

func (c *lambdaStatusCmd) Run(ctx context.Context, io commandline.Console) error {
	return untilInterrupted(ctx, deploy.Status, c.Options, io)
}

type lambdaRemoveCmd struct {
	Options deploy.RemoveOptions `embed:""`
}

func (c *lambdaRemoveCmd) Run(ctx context.Context, io commandline.Console) error {
	return untilInterrupted(ctx, deploy.Remove, c.Options, io)
}

// untilInterrupted runs a command with a context that ends at the first signal, so that the
// command can undo unfinished steps. A second signal ends the process.
func untilInterrupted[O any](ctx context.Context, run func(context.Context, O, io.Writer) error, o O, c commandline.Console) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, o, c.Out)
}
