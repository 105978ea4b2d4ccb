package trials

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"siafu/bench/hosts"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/ranks/runfolder"
	"siafu/ranks/world/mpi"
)

// Site runs trainings. It holds the hosts of one link at a time, and a folder
// for what is thrown away at its end.
type Site struct {
	Machine string // for results

	op      string // in errors
	program string
	tmp     *scratch.Folder
	out     string // where the next training's run folder is kept; "": nowhere
	views   map[[2]string]string

	hosts    *hosts.Hosts // nil: none
	count    int          // of hosts
	rate     float64      // of their links, bytes a second; 0 before they have one
	measured hosts.Measured
}

// Open makes the site of a command, which is the op of its faults.
func Open(op string) (*Site, error) {
	s := &Site{op: op, views: map[[2]string]string{}}
	var err error
	if s.program, err = os.Executable(); err != nil {
		return nil, fault.System(op, "", err)
	}
	if s.tmp, err = scratch.Temp(); err != nil {
		return nil, fault.System(op, "", err)
	}
	return s, nil
}

// UntilInterrupted ends with an interrupt, so that hosts and trainings do not outlive the
// program.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// Close takes hosts down and removes the folder.
func (s *Site) Close() error {
	s.tmp.Close()
	return s.takeDown()
}

func (s *Site) takeDown() error {
	if s.hosts == nil {
		return nil
	}
	h := s.hosts
	s.hosts, s.rate = nil, 0
	return h.Close()
}

// Path returns the path of a temporary file that is removed with the site.
func (s *Site) Path(name string) string { return filepath.Join(s.tmp.Path, name) }

// View is a folder with links to a dataset's files and shards of its own, so that
// the user's stay as they are. Views of different names share no shards.
func (s *Site) View(data, name string) (string, error) {
	at := [2]string{data, name}
	if view := s.views[at]; view != "" {
		return view, nil
	}
	meta, err := graph.ReadMeta(data)
	if err != nil {
		return "", err
	}
	full, err := filepath.Abs(data)
	view := filepath.Join(s.tmp.Path, "data"+strconv.Itoa(len(s.views)))
	if err = cmp.Or(err, os.Mkdir(view, 0o755)); err != nil {
		return "", fault.System(s.op, view, err)
	}
	for _, file := range append(slices.Collect(maps.Keys(meta.Files)), "meta.json") {
		if err := os.Symlink(filepath.Join(full, file), filepath.Join(view, file)); err != nil {
			return "", fault.System(s.op, view, err)
		}
	}
	s.views[at] = view
	return view, nil
}

// Link makes as many hosts with links of N bytes a second, unless they are
// there, and says what a link really does. Faults have kind Config where the build has
// no MPI, Missing where this machine can make no hosts.
func (s *Site) Link(count int, rate float64) (hosts.Measured, error) {
	if !mpi.Available() {
		return hosts.Measured{}, fault.New(fault.Config, s.op, "", "this build has no MPI").
			Then(`install libopenmpi-dev and openmpi-bin ("make deps") and run "make build"`)
	}
	if s.hosts != nil && s.count == count && s.rate == rate {
		return s.measured, nil
	}
	err := error(nil)
	if s.hosts == nil || s.count != count {
		if err = s.takeDown(); err != nil {
			return hosts.Measured{}, err
		}
		if s.hosts, err = hosts.Open(count); err != nil {
			return hosts.Measured{}, err
		}
		s.count = count
	}
	if err = s.hosts.Shape(rate); err == nil {
		s.measured, err = s.hosts.Measure(0, 1)
	}
	s.rate = rate
	return s.measured, err
}

// Over trains a view under mpirun with a rank on each of the hosts that Link has
// made. Args are flags of train but for --out and --quiet; without --threads the hosts
// share this machine's processors.
func (s *Site) Over(ctx context.Context, view string, args ...string) (*runfolder.Run, error) {
	threads := strconv.Itoa(max(runtime.NumCPU()/s.count, 1))
	args = append([]string{"train", view, "--threads", threads}, args...)
	return s.train(ctx, args, func(said *bytes.Buffer, args []string) error {
		return s.hosts.Run(ctx, said, s.program, args...)
	})
}

// Here trains a view in one process. Args are those of Over.
func (s *Site) Here(ctx context.Context, view string, args ...string) (*runfolder.Run, error) {
	return s.train(ctx, append([]string{"train", view}, args...), func(said *bytes.Buffer, args []string) error {
		c := exec.CommandContext(ctx, s.program, args...)
		c.Stdout, c.Stderr = said, said
		return c.Run()
	})
}

// train runs a command line, with constants where it says nothing, and reads the run folder, which the next one replaces unless
// it is kept. A training that its own configuration, or the build, refuses is a fault of
// kind Usage or Config with what it said.
func (s *Site) train(ctx context.Context, args []string, run func(said *bytes.Buffer, args []string) error) (*runfolder.Run, error) {
	out := cmp.Or(s.out, filepath.Join(s.tmp.Path, "run"))
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
