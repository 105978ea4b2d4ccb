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
	"sort"
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
	Settings map[string]string // of config.toml, and dataset
	Epochs   []runfolder.Epoch
	Summary  *runfolder.Summary // nil: it has not ended
	Trace    string             // the timeline that its configuration names; empty: none
}

// Find returns the runs in folders: each is a run folder, or has run folders below it, at any
// depth. A run that cannot be read is in the error, and the others are returned with
// it. Faults are those of runfolder.Read.
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

// below returns the run folders in a folder, itself if it is one, in the order of names.
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
			if more, err := below(path); err == nil { // a folder without runs is none of ours
				list = append(list, more...)
			}
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Missing, op, dir, "it has neither config.toml and metrics.jsonl nor summary.json").Then("name a run folder, or a folder of run folders: %s is neither", dir)
	}
	return list, nil
}

// compareNatural orders names with numbers by the numbers: run-2 before run-10.
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

// digits returns the number of digits that a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// read reads a run folder.
func read(dir string) (*Run, error) {
	progress, err := runfolder.ReadProgress(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Summary: progress.Summary}
	if r.Epochs, err = runfolder.ReadEpochs(dir); err != nil {
		return nil, err
	}
	r.Settings, r.Trace, err = settings(filepath.Join(dir, "config.toml"))
	if err != nil {
		return nil, err
	}
	known := told(filepath.Join(dir, "log.txt"))
	if s := r.Summary; s != nil {
		known = map[string]string{"dataset": named(s.Dataset, s.Synthetic), "ranks": strconv.Itoa(s.Ranks), "servers": strconv.Itoa(s.Servers)}
	}
	maps.Copy(r.Settings, known)
	return r, nil
}

// named says of a dataset whether it is a generated one.
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

// told returns the settings that a run that has not ended knew when it began, as its log says.
func told(log string) map[string]string {
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

// A number of servers that a run settles when it begins.
const (
	undecided = "-1"
	auto      = "auto" // as a table has it
)

// private are settings that say nothing about what ran.
var private = []string{"out", "force", "quiet", "trace", "tensorboard", "keep", "resume", "grace", "stall-warn", "stall-abort", "force-memory", "checkpoint-every"}

// settings are those of a configuration, as text, and the timeline that it names.
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
	if v, ok := s["patience-on"]; ok { // as runs of older versions call it
		s["monitor"] = v
		delete(s, "patience-on")
	}
	if s["servers"] == undecided {
		s["servers"] = auto
	}
	trace, _ = values["trace"].(string)
	return s, trace, nil
}

// Differing returns the names of settings in which runs differ, in order, but for those that
// every table has.
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
	sort.Strings(names)
	return names
}
