package yardstick

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Reference is a running yardstick with its operands.
type Reference struct {
	Name    string  // for a table, "OpenBLAS SkylakeX"
	Seconds float64 // least of all repetitions of Run; 0 before the first

	dir    string // of its operands and results
	cmd    *exec.Cmd
	to     io.WriteCloser
	from   *bufio.Reader
	errors bytes.Buffer
}

// settle is the time for a reference's threads to stop spinning after its answer, so that they do
// not disturb the other side.
const settle = 3 * time.Millisecond

// brief limits the spinning of idle threads of GNU OpenMP and of OpenBLAS to settle; their
// defaults are ten times as long.
var brief = []string{"GOMP_SPINCOUNT=10000", "OPENBLAS_THREAD_TIMEOUT=20"}

// start writes operands to a folder, which belongs to the reference, and runs a program with its
// path and arguments. It waits until the program has read them and run once.
func (l *Runner) start(ctx context.Context, name string, env []string, files operands, program []string,
	args ...string) (*Reference, error) {
	dir, err := l.stage(files)
	if err != nil {
		return nil, err
	}
	line := slices.Concat(program, []string{dir}, args)
	r := &Reference{Name: name, dir: dir, cmd: exec.CommandContext(ctx, line[0], line[1:]...)}
	r.cmd.Env = slices.Concat(os.Environ(), brief, env)
	r.cmd.Stderr = &r.errors
	if err := r.launch(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return r, nil
}

// launch starts the process, waits until it is ready, and frees the files that it has read.
func (r *Reference) launch() error {
	to, err := r.cmd.StdinPipe()
	if err != nil {
		return fault.System(opYardstick, r.cmd.Path, err)
	}
	from, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		return fault.System(opYardstick, r.cmd.Path, err)
	}
	r.to, r.from = to, bufio.NewReader(from)
	said, err := r.answer()
	if err != nil {
		return err
	}
	if said != "ready" {
		r.to.Close()
		r.cmd.Wait()
		return fault.New(fault.Runtime, opYardstick, r.Name, "it printed %q instead of the ready line", said)
	}
	entries, err := os.ReadDir(r.dir)
	for _, e := range entries {
		os.Remove(filepath.Join(r.dir, e.Name()))
	}
	return err
}

// Run lets the reference repeat its work for about the given time, at least once.
func (r *Reference) Run(budget time.Duration) error {
	answer, err := r.ask(fmt.Sprintf("run %f", budget.Seconds()))
	if err != nil {
		return err
	}
	time.Sleep(settle)
	seconds, err := strconv.ParseFloat(answer, 64)
	if err != nil || seconds <= 0 {
		return fault.New(fault.Runtime, opYardstick, r.Name, "it reported %q instead of seconds", answer)
	}
	if r.Seconds == 0 || seconds < r.Seconds {
		r.Seconds = seconds
	}
	return nil
}

// Result returns the last result of the reference.
func (r *Reference) Result() ([]float32, error) {
	path := filepath.Join(r.dir, "result")
	if _, err := r.ask("save " + path); err != nil {
		return nil, err
	}
	defer os.Remove(path)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(opYardstick, path, err)
	}
	return mapped.Cast[float32](content[:len(content)/4*4]), nil
}

// ask sends one line and waits for one.
func (r *Reference) ask(line string) (string, error) {
	if _, err := io.WriteString(r.to, line+"\n"); err != nil {
		return "", r.died(err)
	}
	return r.answer()
}

func (r *Reference) answer() (string, error) {
	line, err := r.from.ReadString('\n')
	if err != nil {
		return "", r.died(err)
	}
	return strings.TrimSpace(line), nil
}

// died returns the fault of a reference that does not answer, with the reason.
func (r *Reference) died(err error) error {
	r.to.Close()
	if end := r.cmd.Wait(); end != nil {
		err = end
	}
	e := &fault.Error{Op: opYardstick, Path: r.Name, Detail: "it ended", Err: err}
	if said := complaint(r.errors.String()); said != "" {
		e.Detail += ": " + said
	}
	return e
}

// Killed reports whether err is the end of a reference that the system killed, as it does if memory is short.
func Killed(err error) bool {
	var end *exec.ExitError
	if !errors.As(err, &end) {
		return false
	}
	status, ok := end.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Close ends the process and removes its operands.
func (r *Reference) Close() error {
	r.to.Close()
	return cmp.Or(r.cmd.Wait(), os.RemoveAll(r.dir))
}
