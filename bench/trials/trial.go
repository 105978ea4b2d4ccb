package trials

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"siafu/ranks/runfolder"
	"siafu/slurm/hosts"
)

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
	Load    string            `json:"load"` // of the machine, before it
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
	view, err := s.View(t.Data, strconv.Itoa(t.Ranks))
	if err != nil {
		return nil, err
	}
	flags := t.Flags
	if folder != "" {
		flags = append([]string{"--trace", Timeline(folder)}, flags...)
		s.out = folder
		defer func() { s.out = "" }()
	}
	var run *runfolder.Run
	if t.Rate == 0 {
		run, err = s.Here(ctx, view, append([]string{"--ranks", strconv.Itoa(t.Ranks)}, flags...)...)
	} else if r.Link, err = s.Link(t.Ranks, t.Rate); err == nil {
		run, err = s.Over(ctx, view, flags...)
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
