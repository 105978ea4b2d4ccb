package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"siafu/cli/commandline"
	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/slurm/hosts"
	"siafu/slurm/launch"
)

type cleanCmd struct {
	Dirs   []string `arg:"" optional:"" name:"dir" help:"Folders to search recursively. None: the current folder."`
	DryRun bool     `name:"dry-run" help:"Print what would be removed without removing it."`
}

func (c *cleanCmd) Run(io commandline.Console) error {
	stay := errors.New("it stays")
	ask := func(path string) error {
		if c.DryRun {
			fmt.Fprintf(io.Out, "left path=%s\n", path)
			return stay
		}
		return nil
	}
	say := func(paths []string) {
		for _, path := range paths {
			fmt.Fprintf(io.Out, "removed path=%s\n", path)
		}
	}
	if len(c.Dirs) == 0 {
		c.Dirs = []string{"."}
	}
	for _, dir := range c.Dirs {
		if _, err := os.Stat(dir); err != nil {
			return fault.System("clean", dir, err)
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // an unreadable folder does not belong to siafu
			}
			if path != dir && scratch.IsName(d.Name()) {
				return fs.SkipDir // a living process may not have locked a new file in it yet
			}
			say(scratch.SweepAll(path, ask))
			return nil
		})
	}
	say(scratch.SweepTemp(ask))
	if !c.DryRun {
		say(hosts.Release())
		launch.Release(func(line string) { fmt.Fprintln(io.Out, line) })
	}
	return nil
}
