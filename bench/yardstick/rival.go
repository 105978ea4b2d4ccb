package yardstick

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Rival is a running yardstick with its operands.
type Rival struct {
	Name string // for a table, "OpenBLAS SkylakeX"

	dir    string // of its operands and results
	cmd    *exec.Cmd
	to     io.WriteCloser
	from   *bufio.Reader
	errors bytes.Buffer
}

// settle is the time for a rival's threads to stop spinning after its answer, so that they do
// not disturb the other side.
const settle = 3 * time.Millisecond

// brief limits the spinning of idle threads of GNU OpenMP and of OpenBLAS to settle; their
// defaults are ten times as long.
var brief = []string{"GOMP_SPINCOUNT=10000", "OPENBLAS_THREAD_TIMEOUT=20"}

// start runs a program on a folder of operands, which then belongs to the rival, and waits
// until it has read them and run once.
func start(ctx context.Context, name, dir string, env []string, program string, args ...string) (*Rival, error) {
	r := &Rival{Name: name, dir: dir, cmd: exec.CommandContext(ctx, program, args...)}
	r.cmd.Env = append(append(os.Environ(), brief...), env...)
	r.cmd.Stderr = &r.errors
	err := r.launch()
	if err == nil {
		err = r.ready()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return r, nil
}

// launch starts the process and connects it.
func (r *Rival) launch() error {
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
	return nil
}

// ready waits for the rival and frees the files that it has read.
func (r *Rival) ready() error {
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

// Run lets the rival repeat its work for about the given time, at least once,
// and returns the least seconds of a repetition.
func (r *Rival) Run(budget time.Duration) (float64, error) {
	answer, err := r.ask(fmt.Sprintf("run %f", budget.Seconds()))
	if err != nil {
		return 0, err
	}
	time.Sleep(settle)
	seconds, err := strconv.ParseFloat(answer, 64)
	if err != nil || seconds <= 0 {
		return 0, fault.New(fault.Runtime, opYardstick, r.Name, "it reported %q instead of seconds", answer)
	}
	return seconds, nil
}

// Result returns the last result of the rival.
func (r *Rival) Result() ([]float32, error) {
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
func (r *Rival) ask(line string) (string, error) {
	if _, err := io.WriteString(r.to, line+"\n"); err != nil {
		return "", r.died(err)
	}
	return r.answer()
}

func (r *Rival) answer() (string, error) {
	line, err := r.from.ReadString('\n')
	if err != nil {
		return "", r.died(err)
	}
	return strings.TrimSpace(line), nil
}

// died returns the fault of a rival that does not answer, with the reason.
func (r *Rival) died(err error) error {
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

// Close ends the process and removes its operands.
func (r *Rival) Close() error {
	r.to.Close()
	err := r.cmd.Wait()
	if gone := os.RemoveAll(r.dir); err == nil {
		err = gone
	}
	return err
}
