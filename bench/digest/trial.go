package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"siafu/bench/hosts"
	"siafu/bench/trials"
	"siafu/graph/durable"
	"siafu/graph/fault"
	"siafu/ranks/runfolder"
)

// Trial is a training whose result is kept.
type Trial struct {
	Data  string   `json:"data"` // dataset folder
	Ranks int      `json:"ranks"`
	Rate  float64  `json:"rate"`  // of links in bytes a second; 0: in one process
	Turn  int      `json:"turn"`  // of those that are repeated
	Flags []string `json:"flags"` // of train
}

// Result is what a trial has left.
type Result struct {
	Trial   Trial             `json:"trial"`
	Version string            `json:"version"`
	Link    hosts.Measured    `json:"link"`
	Load    string            `json:"load"` // of the machine, before it
	Summary runfolder.Summary `json:"summary"`
	Epochs  []runfolder.Epoch `json:"epochs"`
}

// runner does trials.
type runner interface {
	run(ctx context.Context, t Trial) (*Result, error)
}

// onSite is the runner of a site.
type onSite struct{ *trials.Site }

func (s onSite) run(ctx context.Context, t Trial) (*Result, error) {
	r := &Result{Trial: t, Load: load()}
	view, err := s.View(t.Data, strconv.Itoa(t.Ranks))
	if err != nil {
		return nil, err
	}
	var run *runfolder.Run
	if t.Rate == 0 {
		run, err = s.Here(ctx, view, append([]string{"--ranks", strconv.Itoa(t.Ranks)}, t.Flags...)...)
	} else if r.Link, err = s.Link(t.Ranks, t.Rate); err == nil {
		run, err = s.Over(ctx, view, t.Flags...)
	}
	if err != nil {
		return nil, err
	}
	r.Summary, r.Epochs, r.Version = run.Summary, run.Epochs, run.Summary.Version
	return r, nil
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // elsewhere nobody says
	return strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
}

// archive keeps results, in memory and as a file each, and has missing ones made
// until a time is over.
type archive struct {
	runner
	dir     string
	until   time.Time // zero: for ever
	results map[string]*Result
	left    int // trials that there was no time for
}

// get is the result of a trial, nil where the time was over.
func (a *archive) get(ctx context.Context, t Trial) (*Result, error) {
	key := t.key()
	if r := a.results[key]; r != nil {
		return r, nil
	}
	path := filepath.Join(a.dir, key+".json")
	r, err := read(path)
	if err == nil && r == nil {
		if !a.until.IsZero() && time.Now().After(a.until) {
			a.left++
			return nil, nil
		}
		if r, err = a.run(ctx, t); err == nil {
			err = write(path, r)
		}
	}
	if err != nil {
		return nil, err
	}
	a.results[key] = r
	return r, nil
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

// read is a result that was kept, nil where there is none.
func read(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fault.New(fault.Data, op, path, "%v", err).Then("remove the file; its training is done again")
	}
	return r, nil
}

func write(path string, r *Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fault.System(op, path, err)
	}
	return durable.WriteFile(op, path, text, durable.Perm)
}
