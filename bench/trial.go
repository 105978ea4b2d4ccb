package bench

import (
	"context"
	"io"
	"os"

	"siafu/graph/fault"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// trial trains once, says nothing but warnings, and reads the run folder, which is
// kept only where c names it. op is the command that fails where it does.
func trial(ctx context.Context, op, data string, c config.Config) (*runfolder.Run, error) {
	c.Quiet = true
	if c.Out == "" {
		dir, err := os.MkdirTemp("", "siafu-bench-")
		if err != nil {
			return nil, fault.System(op, "", err)
		}
		defer os.RemoveAll(dir)
		c.Out, c.Force = dir, true
	}
	if err := ranks.Train(ctx, c, data, ranks.IO{Out: io.Discard, Err: os.Stderr}); err != nil {
		return nil, err
	}
	return runfolder.Read(c.Out)
}
