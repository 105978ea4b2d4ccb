package runfolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"siafu/graph/fault"
	"siafu/ranks/safetensors"
)

// Metrics is the file of a run folder with a line an epoch.
const Metrics = "metrics.jsonl"

// Files of a run folder.
const (
	configFile  = "config.toml"
	metricsFile = Metrics
	summaryFile = "summary.json"
	modelFile   = "model.safetensors"
	logFile     = "log.txt"
)

const op = "run folder"

// temporary stands in the names of files that are not whole, behind the name
// that they will have.
const temporary = ".tmp-"

// Folder is a run folder that is being written.
type Folder struct {
	dir     string
	metrics *os.File
	log     *os.File
}

// Create makes the run folder out, or runs/NAME-DATE-TIME where out is empty.
// A folder that holds something is a Usage fault; with force a run folder is
// replaced, and nothing else ever is.
func Create(out, name string, force bool) (*Folder, error) {
	if out == "" {
		out = filepath.Join("runs", name+"-"+time.Now().Format("20060102-150405"))
		for i := 2; taken(out); i++ {
			out = filepath.Join("runs", fmt.Sprintf("%s-%s-%d", name, time.Now().Format("20060102-150405"), i))
		}
	}
	if err := clearFolder(out, force); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, fault.System(op, out, err)
	}
	return open(out, os.O_TRUNC)
}

// Reopen opens the folder of a run that goes on. What it said of its end, and
// what it has left half written, is removed.
func Reopen(out string) (*Folder, error) {
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil, fault.System(op, out, err)
	}
	for _, e := range entries {
		path := filepath.Join(out, e.Name())
		if !e.Type().IsRegular() || e.Name() != summaryFile && !strings.Contains(e.Name(), temporary) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return nil, fault.System(op, path, err)
		}
	}
	return open(out, 0)
}

// open opens what is appended to.
func open(out string, flags int) (*Folder, error) {
	f := &Folder{dir: out}
	for _, x := range []struct {
		name string
		to   **os.File
	}{{metricsFile, &f.metrics}, {logFile, &f.log}} {
		path := filepath.Join(out, x.name)
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|flags, 0o644)
		if err != nil {
			f.Close()
			return nil, fault.System(op, path, err)
		}
		*x.to = file
	}
	return f, nil
}

// Abandoned tells whether a folder holds nothing but what a run makes, and no
// summary: the run that began there has not ended.
func Abandoned(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), temporary)
		if !slices.Contains([]string{configFile, metricsFile, modelFile, logFile, "checkpoints", "lock"}, name) {
			return false
		}
	}
	return true
}

// Ended is the summary of the run in a folder, nil where there is none that has
// ended.
func Ended(dir string) *Summary {
	text, err := os.ReadFile(filepath.Join(dir, summaryFile))
	if err != nil {
		return nil
	}
	s := &Summary{}
	if json.Unmarshal(text, s) != nil {
		return nil
	}
	return s
}

// Lines are the epochs in the folder's metrics.jsonl.
func (f *Folder) Lines() ([]Epoch, error) { return readEpochs(filepath.Join(f.dir, metricsFile)) }

func taken(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// clearFolder empties a run folder that may be replaced.
func clearFolder(dir string, force bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fault.System(op, dir, err)
	case !force:
		return fault.New(fault.Usage, op, dir, "it exists already").Then("choose another --out, or replace it with --force")
	case !Abandoned(dir) && (!taken(filepath.Join(dir, configFile)) || !taken(filepath.Join(dir, metricsFile))):
		return fault.New(fault.Usage, op, dir, "it is not a run folder, so it is not replaced").Then("choose another --out")
	}
	if err := os.RemoveAll(dir); err != nil {
		return fault.System(op, dir, err)
	}
	return nil
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Log is log.txt.
func (f *Folder) Log() io.Writer { return f.log }

// WriteConfig writes config.toml.
func (f *Folder) WriteConfig(v any) error {
	return f.whole(configFile, func(w io.Writer) error { return toml.NewEncoder(w).Encode(v) })
}

// WriteSummary writes summary.json.
func (f *Folder) WriteSummary(s Summary) error {
	return f.whole(summaryFile, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	})
}

// WriteModel writes model.safetensors.
func (f *Folder) WriteModel(tensors []safetensors.Tensor, metadata map[string]string) error {
	return safetensors.Write(filepath.Join(f.dir, modelFile), tensors, metadata)
}

// AppendEpoch writes one line of metrics.jsonl; a reader sees whole lines.
func (f *Folder) AppendEpoch(e Epoch) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fault.New(fault.Runtime, op, filepath.Join(f.dir, metricsFile), "epoch %d: %v", e.Epoch, err).
			Then("lower --lr: the loss is no longer a number")
	}
	if _, err := f.metrics.Write(append(line, '\n')); err != nil {
		return fault.System(op, filepath.Join(f.dir, metricsFile), err)
	}
	return nil
}

// whole writes a file that appears whole or not at all.
func (f *Folder) whole(name string, fill func(io.Writer) error) error {
	path := filepath.Join(f.dir, name)
	file, err := os.CreateTemp(f.dir, name+temporary+"*")
	if err != nil {
		return fault.System(op, path, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	for _, step := range []func() error{
		func() error { return fill(file) },
		func() error { return file.Chmod(0o644) },
		file.Sync,
		func() error { return os.Rename(file.Name(), path) },
	} {
		if err := step(); err != nil {
			return fault.System(op, path, err)
		}
	}
	return nil
}

// Close closes what is open.
func (f *Folder) Close() error {
	var first error
	for _, file := range []*os.File{f.metrics, f.log} {
		if file == nil {
			continue
		}
		if err := file.Close(); err != nil && first == nil {
			first = fault.System(op, file.Name(), err)
		}
	}
	return first
}
