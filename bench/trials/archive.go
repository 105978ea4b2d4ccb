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

// Archive keeps results, in memory and as a file each, and has missing ones made
// until a time is over.
type Archive struct {
	Runner
	op      string
	dir     string
	hours   float64
	until   time.Time // zero: for ever
	results map[string]*Result
	used    []*Result       // by the part under way
	left    map[string]bool // trials that there was no time for
}

// NewArchive keeps results in a folder, which it makes, and has none made after so many
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

// Get is the result of a trial, nil where the time was over.
func (a *Archive) Get(ctx context.Context, t Trial) (*Result, error) {
	return a.GetFrom(ctx, t, a.Runner)
}

// GetFrom is Get with a trial that the caller runs.
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

// keep reads a result, or has it made.
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

// read is a result that was kept, nil where there is none.
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
