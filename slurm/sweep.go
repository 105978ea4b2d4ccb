package slurm

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

// Sweep is a sequence of trainings on this machine, one for each combination of some flags' values.
// Each training is a separate process, so a failure does not affect the others, and each reports its
// own memory. The run folder of a training is named after its setting. An interrupted training resumes
// there, and a finished training is not repeated.
type Sweep struct {
	Settings []Setting
	Dir      string                               // folder of their run folders
	Command  func(s Setting, out string) []string // returns a program and its arguments
	Check    func(s Setting) error                // checks the flags before any training
	Out, Err io.Writer                            // Err receives the standard error of trainings
}

// Failure is a failed training.
type Failure struct {
	Setting Setting
	Kind    fault.Kind
	Detail  string
}

// Run trains with each setting, and returns the failures. At SIGINT, SIGTERM or SIGHUP the current
// training saves and stops, and Run returns a fault of kind Stopped.
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
			return failed, fault.New(fault.Stopped, "sweep", s.Dir, "stopped in %s, %d of %d", setting, i+1, len(s.Settings)).
				Then("run the same command again to continue")
		}
		if f != nil {
			failed = append(failed, *f)
		}
	}
	return failed, nil
}

// check returns the settings with invalid flags, by index.
func (s *Sweep) check() map[int]*Failure {
	bad := map[int]*Failure{}
	for i, setting := range s.Settings {
		if err := s.Check(setting); err != nil {
			bad[i] = &Failure{setting, fault.KindOf(err), err.Error()}
		}
	}
	return bad
}

// train runs one training, and returns its failure, or nil.
func (s *Sweep) train(ctx context.Context, setting Setting) *Failure {
	line := s.Command(setting, filepath.Join(s.Dir, setting.Folder()))
	said := &tee{to: s.Err}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stderr = said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	// The terminal's signals must reach the process only through the context: a second signal kills.
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

// tee forwards the standard error of a training, ignores errors, and stores the last 64 KiB.
type tee struct {
	to  io.Writer
	end []byte
}

func (s *tee) Write(b []byte) (int, error) {
	s.to.Write(b)
	s.end = append(s.end, b...)
	s.end = s.end[max(0, len(s.end)-1<<16):]
	return len(b), nil
}

func (s *tee) last() string {
	lines := strings.Split(strings.TrimSpace(string(s.end)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "siafu: ")
}
