package trials

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/screen"
	"siafu/ranks/runfolder"
	"siafu/slurm/hosts"
)

// Archive stores results, in memory and in one file each, and runs missing trials until a time
// limit.
type Archive struct {
	Runner
	Progress io.Writer // receives a line at the start of a trial and every few seconds; nil: none

	op      string
	dir     string
	hours   float64
	until   time.Time // zero: no limit
	started int       // trials
	results map[string]*Result
	used    []*Result       // by the current part
	left    map[string]bool // trials not started or not finished because of the time limit

	refusals map[string]error // by key of Sheet.Try
}

// NewArchive stores results in a folder, which it creates, and runs no trial after the given
// hours from now; 0 is no limit. op names the operation in faults.
func NewArchive(op, dir string, hours float64) (*Archive, error) {
	a := &Archive{op: op, dir: dir, hours: hours, results: map[string]*Result{}, left: map[string]bool{},
		refusals: map[string]error{}}
	a.Since(time.Now())
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fault.System(op, dir, err)
	}
	return a, nil
}

// Since moves the start of the archive's hours.
func (a *Archive) Since(start time.Time) {
	if a.hours > 0 {
		a.until = start.Add(time.Duration(a.hours * float64(time.Hour)))
	}
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
	if r, err = a.run(ctx, t, key, by); err != nil || r == nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fault.System(a.op, path, err)
	}
	return r, durable.WriteFile(a.op, path, text, durable.Perm)
}

// run runs a trial, and stops it at the time limit. Then it returns nil without an error.
func (a *Archive) run(ctx context.Context, t Trial, key string, by Runner) (*Result, error) {
	within, cancel := ctx, func() {}
	if !a.until.IsZero() {
		within, cancel = context.WithDeadlineCause(ctx, a.until, errLimit)
	}
	defer cancel()
	var r *Result
	err := context.Cause(within)
	if err == nil {
		stop := a.reportProgress(t)
		r, err = by.Run(within, t, a.Folder(t))
		stop()
	}
	if err != nil && errors.Is(context.Cause(within), errLimit) {
		a.left[key] = true
		return nil, nil
	}
	return r, err
}

// errLimit ends a trial at the time limit.
var errLimit = errors.New("the hours are over")

// reportProgress writes a line about a trial now and every few seconds until the caller stops it.
func (a *Archive) reportProgress(t Trial) (stop func()) {
	a.started++
	start := time.Now()
	line := func() string {
		limit := ""
		if !a.until.IsZero() {
			limit = fmt.Sprintf(", %s left of %g hours", max(time.Until(a.until), 0).Round(time.Second), a.hours)
		}
		return fmt.Sprintf("%s: training %d (%s on %d ranks) runs for %s%s",
			a.op, a.started, filepath.Base(t.Data), t.Ranks, time.Since(start).Round(time.Second), limit)
	}
	if a.Progress != nil {
		fmt.Fprintln(a.Progress, line())
	}
	return screen.Repeat(a.Progress, line)
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

// Trial is a training whose result is stored.
type Trial struct {
	Data   string   `json:"data"` // dataset folder
	Ranks  int      `json:"ranks"`
	Rate   float64  `json:"rate"`             // of links in bytes a second; 0: in one process
	Turn   int      `json:"turn"`             // number of the repetition
	Flags  []string `json:"flags"`            // of train
	Record bool     `json:"record,omitempty"` // its run folder and timeline are stored too
}

// Result is the result of a trial.
type Result struct {
	Trial   Trial             `json:"trial"`
	Version string            `json:"version"`
	Machine string            `json:"machine,omitempty"`
	Link    hosts.Measured    `json:"link"`
	Traffic *Traffic          `json:"traffic,omitempty"` // nil: in one process
	Load    string            `json:"load"`              // of the machine, before it
	Summary runfolder.Summary `json:"summary"`
	Epochs  []runfolder.Epoch `json:"epochs"`
}

// Runner runs trials. folder is the destination of the run folder, with the timeline next to
// it (Timeline), or "" to store neither.
type Runner interface {
	Run(ctx context.Context, t Trial, folder string) (*Result, error)
}

// Timeline returns the timeline in the run folder of a recorded trial.
func Timeline(folder string) string { return folder + ".trace.json" }

// Run runs a trial on the site.
func (s *Site) Run(ctx context.Context, t Trial, folder string) (*Result, error) {
	r := &Result{Trial: t, Load: Load(), Machine: s.Machine}
	flags := append(s.Shards(t.Data, strconv.Itoa(t.Ranks)), t.Flags...)
	if folder != "" {
		flags = append([]string{"--trace", Timeline(folder)}, flags...)
		s.out = folder
		defer func() { s.out = "" }()
	}
	var run *runfolder.Run
	var err error
	if t.Rate == 0 {
		run, err = s.Here(ctx, t.Data, append([]string{"--ranks", strconv.Itoa(t.Ranks)}, flags...)...)
	} else if r.Link, err = s.Link(t.Ranks, t.Rate); err == nil {
		r.Traffic = &Traffic{}
		run, *r.Traffic, err = s.Over(ctx, t.Data, flags...)
	}
	if err != nil {
		return nil, err
	}
	r.Summary, r.Epochs, r.Version = run.Summary, run.Epochs, run.Summary.Version+Commit()
	return r, nil
}

// Load returns the machine's load average.
func Load() string {
	text, _ := os.ReadFile("/proc/loadavg") // only on Linux
	return strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
}

// Commit returns the program's commit, preceded by a blank, and whether there were uncommitted
// changes; "" if the build has none.
func Commit() (text string) {
	info, known := debug.ReadBuildInfo()
	if !known {
		return ""
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			text += " and changes"
		}
	}
	return text
}

// key names a trial.
func (t Trial) key() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
