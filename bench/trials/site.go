package trials

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"siafu/cli/commandline"
	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/ranks/runfolder"
	"siafu/ranks/world/mpi"
	"siafu/slurm/hosts"
)

// Site runs trainings. It has the hosts of one link at a time, and a temporary folder.
type Site struct {
	Machine string       // for results
	Program string       // path of siafu
	Hosts   *hosts.Hosts // nil: none

	op     string // in errors
	tmp    *scratch.Folder
	out    string               // destination of the next training's run folder; "": removed
	shards map[[2]string]string // folders by dataset and name

	count    int     // of hosts
	rate     float64 // of their links, bytes a second; 0 before they have one
	measured hosts.Measured
}

// Open makes the site of a command, which faults name as op.
func Open(op string) (*Site, error) {
	s := &Site{op: op, shards: map[[2]string]string{}}
	var err error
	if s.Program, err = commandline.Sibling(op, "siafu"); err != nil {
		return nil, err
	}
	if s.tmp, err = scratch.Temp(); err != nil {
		return nil, fault.System(op, "", err)
	}
	return s, nil
}

// OnSite calls do with a new site, which it then closes. An interrupt ends the context.
func OnSite(ctx context.Context, op string, do func(context.Context, *Site) error) error {
	ctx, stop := UntilInterrupted(ctx)
	defer stop()
	site, err := Open(op)
	if err != nil {
		return err
	}
	return cmp.Or(do(ctx, site), site.Close())
}

// UntilInterrupted ends with an interrupt, so that hosts and trainings do not outlive the
// program.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// Close removes hosts and the folder.
func (s *Site) Close() error {
	s.tmp.Close()
	return s.takeDown()
}

func (s *Site) takeDown() error {
	if s.Hosts == nil {
		return nil
	}
	h := s.Hosts
	s.Hosts, s.count, s.rate = nil, 0, 0
	return h.Close()
}

// Path returns the path of a temporary file that is removed with the site.
func (s *Site) Path(name string) string { return filepath.Join(s.tmp.Path, name) }

// Shards returns a folder for a dataset's shards, so that the user's stay unchanged, as the flag of
// train. Different names have different folders.
func (s *Site) Shards(data, name string) []string {
	at := [2]string{data, name}
	if s.shards[at] == "" {
		s.shards[at] = s.Path("shards" + strconv.Itoa(len(s.shards)))
	}
	return []string{"--parts-dir", s.shards[at]}
}

// RequireMPI returns a fault of kind Config if the build has no MPI.
func RequireMPI(op string) error {
	if mpi.Available() {
		return nil
	}
	return fault.New(fault.Config, op, "", "this build has no MPI").
		Then(`install libopenmpi-dev and openmpi-bin ("make deps") and run "make build"`)
}

// Link makes count hosts with links of rate bytes per second, unless they exist, and measures
// a link. Faults have kind Config if the build has no MPI, Missing if this machine cannot make
// hosts.
func (s *Site) Link(count int, rate float64) (m hosts.Measured, err error) {
	if err := RequireMPI(s.op); err != nil {
		return m, err
	}
	if s.count != count {
		if err := s.takeDown(); err != nil {
			return m, err
		}
		if s.Hosts, err = hosts.Open(count); err != nil {
			return m, err
		}
		s.count = count
	}
	if s.rate != rate {
		if err = s.Hosts.Shape(rate); err == nil {
			s.measured, err = s.Hosts.Measure(0, 1)
		}
		s.rate = rate
	}
	return s.measured, err
}

// Over trains on a dataset under mpirun with a rank on each of Link's hosts. Args are flags of train
// except --out and --quiet; without --threads the hosts share this machine's processors. The
// traffic is that of the hosts' interfaces during the run.
func (s *Site) Over(ctx context.Context, data string, args ...string) (run *runfolder.Run, sent Traffic, err error) {
	threads := strconv.Itoa(max(runtime.NumCPU()/s.count, 1))
	args = append([]string{"train", data, "--threads", threads}, args...)
	run, err = s.train(ctx, args, func(said *bytes.Buffer, args []string) error {
		stop := s.watchTraffic(s.folder())
		defer func() { sent = stop() }()
		return s.Hosts.Run(ctx, said, s.Program, args...)
	})
	return run, sent, err
}

// Here trains on a dataset in one process. Args are as for Over.
func (s *Site) Here(ctx context.Context, data string, args ...string) (*runfolder.Run, error) {
	return s.train(ctx, append([]string{"train", data}, args...), func(said *bytes.Buffer, args []string) error {
		c := exec.CommandContext(ctx, s.Program, args...)
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it also ends its functions
		c.WaitDelay = 5 * time.Second
		c.Stdout, c.Stderr = said, said
		return c.Run()
	})
}

// folder returns the folder of the next training.
func (s *Site) folder() string { return cmp.Or(s.out, filepath.Join(s.tmp.Path, "run")) }

// train runs a command line with default flags, and reads the run folder, which the next run
// replaces unless it has its own. If its configuration or the build refuses the training, it
// returns a fault of kind Usage or Config with the message.
func (s *Site) train(ctx context.Context, args []string, run func(said *bytes.Buffer, args []string) error) (*runfolder.Run, error) {
	out := s.folder()
	var said bytes.Buffer
	if err := run(&said, append(args, "--defaults", "fixed", "--out", out, "--force", "--quiet")); err != nil {
		var ended *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return nil, fault.New(fault.Runtime, s.op, "", "interrupted")
		case fault.KindOf(err) == fault.Missing:
			return nil, err
		case errors.As(err, &ended) && slices.Contains([]int{fault.Config.ExitCode(), fault.Usage.ExitCode()}, ended.ExitCode()):
			return nil, fault.New(fault.KindOfCode(ended.ExitCode()), s.op, "", "%s", strings.TrimSpace(said.String()))
		}
		return nil, fault.New(fault.Runtime, s.op, "", "training failed (%v):\n%s", err, said.String())
	}
	return runfolder.Read(out)
}
