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

	"siafu/bench/hosts"
	"siafu/ranks/runfolder"
)

// Trial is a training whose result is kept.
type Trial struct {
	Data   string   `json:"data"` // dataset folder
	Ranks  int      `json:"ranks"`
	Rate   float64  `json:"rate"`             // of links in bytes a second; 0: in one process
	Turn   int      `json:"turn"`             // of those that are repeated
	Flags  []string `json:"flags"`            // of train
	Record bool     `json:"record,omitempty"` // its run folder and timeline are kept too
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

// Runner does trials. Folder is where the run folder is to be kept, with the timeline
// beside it (Timeline), and "" where nothing of it is.
type Runner interface {
	Run(ctx context.Context, t Trial, folder string) (*Result, error)
}

// Timeline returns the timeline in the run folder of a recorded trial.
func Timeline(folder string) string { return folder + ".trace.json" }

// Run does a trial on the site.
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

// Load is that of the machine, as the system has it.
func Load() string {
	text, _ := os.ReadFile("/proc/loadavg") // elsewhere nobody says
	return strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
}

// Commit is that of the program, with a blank before it, and whether more was changed;
// "" where the build does not say.
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
