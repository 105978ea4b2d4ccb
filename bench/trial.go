package bench

import (
	"context"
	"io"
	"os"

	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// trial trains once, prints only warnings, and reads the run folder, which is removed unless c
// names it. op is the command in faults.
func trial(ctx context.Context, op, data string, c config.Config) (*runfolder.Run, error) {
	c.Quiet = true
	if c.Out == "" {
		tmp, err := scratch.Temp()
		if err != nil {
			return nil, fault.System(op, "", err)
		}
		defer tmp.Close()
		c.Out, c.Force = tmp.Path, true
	}
	if err := ranks.Train(ctx, c, data, ranks.IO{Out: io.Discard, Err: os.Stderr}); err != nil {
		return nil, err
	}
	return runfolder.Read(c.Out)
}
