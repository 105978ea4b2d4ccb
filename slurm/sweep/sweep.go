package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"siafu/internal/fault"
	"siafu/slurm/launch"
)

const op = "sweep"

// Sweep is trainings, one after the other.
type Sweep struct {
	Settings []Setting
	Dir      string                               // of their run folders
	Command  func(s Setting, out string) []string // a program and its arguments
	Check    func(s Setting) error                // of its flags, before anything runs
	Out, Err io.Writer                            // Err gets what trainings say there
}

// Failure is a training that has failed.
type Failure struct {
	Setting Setting
	Kind    fault.Kind
	Detail  string
}

// Run trains with each setting. What has failed is returned in the end. With SIGINT,
// SIGTERM or SIGHUP the training under way is told to save and to stop, and Run returns
// a fault of kind Stopped.
func (s *Sweep) Run(ctx context.Context) ([]Failure, error) {
	bad := s.check()
	if len(bad) == len(s.Settings) {
		return nil, s.Check(s.Settings[0])
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	var failed []Failure
	for i, setting := range s.Settings {
		fmt.Fprintf(s.Out, "sweep %d/%d %s\n", i+1, len(s.Settings), setting)
		f := bad[i]
		if f == nil {
			f = s.train(ctx, setting)
		}
		if ctx.Err() != nil {
			return failed, fault.New(fault.Stopped, op, s.Dir, "stopped in %s, %d of %d", setting, i+1, len(s.Settings)).Then("run the same command again to continue")
		}
		if f != nil {
			failed = append(failed, *f)
		}
	}
	return failed, nil
}

// check finds settings whose flags are wrong, by their index.
func (s *Sweep) check() map[int]*Failure {
	bad := map[int]*Failure{}
	for i, setting := range s.Settings {
		if err := s.Check(setting); err != nil {
			bad[i] = &Failure{setting, fault.KindOf(err), err.Error()}
		}
	}
	return bad
}

// train runs one process, and says what was wrong with it.
func (s *Sweep) train(ctx context.Context, setting Setting) *Failure {
	line := s.Command(setting, filepath.Join(s.Dir, setting.Folder()))
	said := &said{to: s.Err}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stderr = said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	// A terminal's signals reach it through the context alone: two would be one too many.
	defer launch.Bind(cmd)()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	f := &Failure{Setting: setting, Detail: said.last()}
	if f.Detail == "" {
		f.Detail = err.Error()
	}
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		f.Kind = fault.KindOfCode(ended.ExitCode())
	}
	return f
}

// said hands on what a training says, whether anybody still hears it or not, and keeps
// the end of it.
type said struct {
	to  io.Writer
	end []byte
}

func (s *said) Write(b []byte) (int, error) {
	s.to.Write(b)
	s.end = append(s.end, b...)
	s.end = s.end[max(0, len(s.end)-1<<16):]
	return len(b), nil
}

// last returns the last line.
func (s *said) last() string {
	lines := strings.Split(strings.TrimSpace(string(s.end)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "siafu: ")
}
