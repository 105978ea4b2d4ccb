package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

const op = "report"

// Run is a run of any state.
type Run struct {
	Dir      string
	Settings map[string]string // of config.toml, and the dataset
	Epochs   []runfolder.Epoch // see sample
	Progress runfolder.Progress
	Lines    int                // of metrics.jsonl
	Summary  *runfolder.Summary // nil: the run has not ended
	Trace    string             // path of the timeline in the configuration; empty: none
}

// Find returns the runs in folders. Each folder is a run folder or contains run folders at any
// depth. The error joins the faults of unreadable runs (see runfolder.ReadProgress). The other
// runs are returned with it.
func Find(dirs []string) ([]*Run, error) {
	var runs []*Run
	var failed []error
	for _, dir := range dirs {
		list, err := below(dir)
		if err != nil {
			failed = append(failed, err)
		}
		for _, each := range list {
			r, err := read(each)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			runs = append(runs, r)
		}
	}
	return runs, errors.Join(failed...)
}

// mostSampled bounds the epochs in memory. A chart has fewer pixels.
const mostSampled = 1 << 14

// sample returns a function that adds the next epoch of the run. Of a long run, Epochs has only the epochs whose
// numbers are multiples of a power of two, so that several runs have the same ones.
func (r *Run) sample() func(e *runfolder.Epoch) {
	stride, elapsed := 1, 0.0
	return func(e *runfolder.Epoch) {
		r.Lines++
		elapsed += e.Seconds + e.EvalSeconds // older versions recorded no elapsed time
		if e.Elapsed == 0 {
			e.Elapsed = elapsed
		}
		elapsed = e.Elapsed
		if e.Epoch%stride == 0 {
			r.Epochs = append(r.Epochs, *e)
		}
		for len(r.Epochs) > mostSampled {
			stride *= 2
			r.Epochs = slices.DeleteFunc(r.Epochs, func(e runfolder.Epoch) bool { return e.Epoch%stride != 0 })
		}
	}
}

// below returns the run folders in dir in the order of their names, or dir if it is a run folder.
func below(dir string) ([]string, error) {
	if runfolder.IsRun(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.System(op, dir, err)
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return compareNatural(a.Name(), b.Name()) })
	var list []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); e.IsDir() {
			if more, err := below(path); err == nil { // skip folders without runs
				list = append(list, more...)
			}
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Missing, op, dir, "it has neither config.toml and metrics.jsonl nor summary.json").
			Then("name a run folder, or a folder that contains run folders")
	}
	return list, nil
}

// compareNatural orders names that contain numbers by the numbers: run-2 before run-10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		n, m := digits(a), digits(b)
		if n > 0 && m > 0 {
			x, y := strings.TrimLeft(a[:n], "0"), strings.TrimLeft(b[:m], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[n:], b[m:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns the number of leading digits of a text.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func read(dir string) (*Run, error) {
	progress, err := runfolder.ReadProgress(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Summary: progress.Summary, Progress: *progress}
	if err := runfolder.EachEpoch(dir, r.sample()); err != nil {
		return nil, err
	}
	r.Settings, r.Trace, err = settings(filepath.Join(dir, "config.toml"))
	if err != nil {
		return nil, err
	}
	known := logged(filepath.Join(dir, "log.txt"))
	if s := r.Summary; s != nil {
		known = map[string]string{"dataset": named(s.Dataset, s.Synthetic), "ranks": strconv.Itoa(s.Ranks),
			"servers": strconv.Itoa(s.Servers)}
	}
	maps.Copy(r.Settings, known)
	return r, nil
}

// decided reports whether the run decided a setting: by the graph, a measurement or free memory.
func (r *Run) decided(name string) bool {
	s := cmp.Or(r.Summary, new(runfolder.Summary))
	taken, _ := s.Taken.([]any)
	_, measured := s.Decided[name]
	return measured || slices.ContainsFunc(taken, func(x any) bool {
		of, _ := x.(map[string]any)
		return of["flag"] == name
	})
}

// named returns the name of a dataset, with a note if it is generated.
func named(dataset string, generated bool) string {
	if generated {
		dataset += " (generated)"
	}
	return dataset
}

var (
	datasetLine = regexp.MustCompile(`(?m)^dataset name=(.*) vertices=`)
	worldLine   = regexp.MustCompile(`(?m)^world .* ranks=(\d+) .*servers=(\d+)`)
)

// logged returns the settings in the log of a run, which are known before the run ends.
func logged(log string) map[string]string {
	text, _ := os.ReadFile(log)
	known := map[string]string{}
	if m := datasetLine.FindSubmatch(text); m != nil {
		known["dataset"] = named(string(m[1]), bytes.Contains(text, []byte("\ndataset synthetic=true")))
	}
	if m := worldLine.FindSubmatch(text); m != nil {
		known["ranks"], known["servers"] = string(m[1]), string(m[2])
	}
	return known
}

// A number of servers that a run chooses when it begins.
const (
	undecided = "-1"   // in the configuration
	auto      = "auto" // in the table
)

// private are settings that do not influence the training.
var private = []string{"out", "force", "quiet", "trace", "tensorboard", "keep", "resume", "grace", "stall-warn", "stall-abort",
	"force-memory", "checkpoint-every"}

// settings reads the settings of a configuration as text, and the path of its timeline.
func settings(path string) (s map[string]string, trace string, err error) {
	var values map[string]any
	if _, err := toml.DecodeFile(path, &values); err != nil {
		return nil, "", fault.New(fault.Data, op, path, "%v", err).Then("train again")
	}
	s = map[string]string{}
	for name, v := range values {
		if !slices.Contains(private, name) {
			s[name] = fmt.Sprint(v)
		}
	}
	if v, ok := s["patience-on"]; ok { // the name in older versions
		s["monitor"] = v
		delete(s, "patience-on")
	}
	if s["servers"] == undecided {
		s["servers"] = auto
	}
	trace, _ = values["trace"].(string)
	return s, trace, nil
}

// Differing returns the sorted names of the settings that differ between runs.
func Differing(runs []*Run) []string {
	values := map[string]map[string]bool{}
	for _, r := range runs {
		for name, v := range r.Settings {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][v] = true
		}
	}
	var names []string
	for name, of := range values {
		present := 0
		for _, r := range runs {
			if _, ok := r.Settings[name]; ok {
				present++
			}
		}
		if len(of) > 1 || present < len(runs) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
