package trials

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"siafu/internal/durable"
	"siafu/internal/fault"
)

// Archive stores results, in memory and in one file each, and runs missing trials until a time
// limit.
type Archive struct {
	Runner
	op      string
	dir     string
	hours   float64
	until   time.Time // zero: no limit
	results map[string]*Result
	used    []*Result       // by the current part
	left    map[string]bool // trials skipped because of the time limit
}

// NewArchive stores results in a folder, which it creates, and runs no trial after the given
// hours; 0 is no limit. op names the operation in faults.
func NewArchive(op, dir string, hours float64) (*Archive, error) {
	a := &Archive{op: op, dir: dir, hours: hours, results: map[string]*Result{}, left: map[string]bool{}}
	if hours > 0 {
		a.until = time.Now().Add(time.Duration(hours * float64(time.Hour)))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fault.System(op, dir, err)
	}
	return a, nil
}

// Get returns the result of a trial, nil after the time limit.
func (a *Archive) Get(ctx context.Context, t Trial) (*Result, error) {
	return a.GetFrom(ctx, t, a.Runner)
}

// GetFrom gets a result like Get, but the caller runs the trial.
func (a *Archive) GetFrom(ctx context.Context, t Trial, by Runner) (*Result, error) {
	key := t.key()
	r, err := a.results[key], error(nil)
	if r == nil {
		r, err = a.keep(ctx, t, key, by)
	}
	if r != nil && !slices.Contains(a.used, r) {
		a.results[key], a.used = r, append(a.used, r)
	}
	return r, err
}

// keep reads a result, or runs the trial.
func (a *Archive) keep(ctx context.Context, t Trial, key string, by Runner) (*Result, error) {
	path := filepath.Join(a.dir, key+".json")
	r, err := a.read(path)
	if err != nil || r != nil {
		return r, err
	}
	if !a.until.IsZero() && time.Now().After(a.until) {
		a.left[key] = true
		return nil, nil
	}
	if r, err = by.Run(ctx, t, a.Folder(t)); err != nil {
		return nil, err
	}
	return r, a.write(path, r)
}

// Folder returns the run folder of a recorded trial.
func (a *Archive) Folder(t Trial) string {
	if !t.Record {
		return ""
	}
	return filepath.Join(a.dir, t.key())
}

// read returns a stored result, nil if there is none.
func (a *Archive) read(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.System(a.op, path, err)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fault.New(fault.Data, a.op, path, "%v", err).Then("remove the file and run again: its training is repeated")
	}
	return r, nil
}

func (a *Archive) write(path string, r *Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fault.System(a.op, path, err)
	}
	return durable.WriteFile(a.op, path, text, durable.Perm)
}
