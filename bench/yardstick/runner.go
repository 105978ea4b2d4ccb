package yardstick

import (
	"context"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

const opYardstick = "yardstick"

//go:embed src
var sources embed.FS

// Runner starts yardsticks. It is a temporary folder, in memory where the system has one, with the
// compiled yardsticks and the operands of running ones. It is used by one goroutine.
type Runner struct {
	tmp      *scratch.Folder
	dir      string            // its path
	compiled map[string]error  // by name, once requested
	pythons  map[string]string // by their modules, once found
}

// NewRunner makes the folder. Close removes it.
func NewRunner() (*Runner, error) {
	// Operands are copied through the folder: memory is faster than a disk.
	tmp, err := scratch.TempInMemory()
	if err != nil {
		return nil, fault.System(opYardstick, "", err)
	}
	l := &Runner{tmp: tmp, dir: tmp.Path, compiled: map[string]error{}, pythons: map[string]string{}}
	if err := os.CopyFS(l.dir, sources); err != nil {
		l.Close()
		return nil, fault.System(opYardstick, l.dir, err)
	}
	return l, nil
}

// Close removes the folder. References must be closed before.
func (l *Runner) Close() { l.tmp.Close() }

// source returns the path of a yardstick's source file.
func (l *Runner) source(file string) string { return filepath.Join(l.dir, "src", file) }

// compile compiles src/NAME.c at the first call.
func (l *Runner) compile(ctx context.Context, name string, flags ...string) (string, error) {
	path := filepath.Join(l.dir, name)
	err, known := l.compiled[name]
	if !known {
		err = gcc(ctx, path, l.source(name+".c"), flags)
		l.compiled[name] = err
	}
	return path, err
}

func gcc(ctx context.Context, out, source string, flags []string) error {
	args := append([]string{"-O3", "-march=native", "-o", out, source}, flags...)
	said, err := exec.CommandContext(ctx, "gcc", args...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	e := fault.New(fault.Missing, opYardstick, filepath.Base(source), "gcc: %v", err).
		Then("install gcc, and libopenblas-dev for dense products")
	if first := complaint(string(said)); first != "" {
		e.Detail = first
	}
	return e
}

// complaint returns the first error in the output of a compiler or an interpreter.
func complaint(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, line := range lines {
		if strings.Contains(line, "error") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// operands has flat arrays by the names of their files.
type operands map[string][]byte

// stage writes operands into a new folder.
func (l *Runner) stage(files operands) (string, error) {
	dir, err := os.MkdirTemp(l.dir, "operands-")
	if err != nil {
		return "", fault.System(opYardstick, l.dir, err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			os.RemoveAll(dir)
			return "", fault.System(opYardstick, path, err)
		}
	}
	return dir, nil
}
