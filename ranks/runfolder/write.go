package runfolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/BurntSushi/toml"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/safetensors"
	"siafu/internal/scratch"
)

// Metrics is the file of a run folder with one line per epoch.
const Metrics = "metrics.jsonl"

// Files of a run folder.
const (
	// KnownFile is written by package predictions, ScriptFile by package pytorch.
	KnownFile   = "vertices.known"
	ScriptFile  = "model.py"
	configFile  = "config.toml"
	metricsFile = Metrics
	summaryFile = "summary.json"
	modelFile   = "model.safetensors"
	logFile     = "log.txt"
	markerFile  = "run.json"
)

const op = "run folder"

// isTemporary reports whether a name is the name of an unfinished file of this package.
func isTemporary(name string) bool {
	return scratch.IsName(name) && slices.ContainsFunc(own, func(e inventory.Entry) bool { return e.Name.MatchString(name) })
}

// Ended returns the summary of the run in a folder, or nil if there is no run that has ended.
func Ended(dir string) *Summary {
	s, err := readSummary(dir)
	if err != nil {
		return nil
	}
	return s
}

// readSummary reads the summary of a run. A missing summary is a fault of kind Missing.
func readSummary(dir string) (*Summary, error) {
	path := filepath.Join(dir, summaryFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	s := &Summary{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fault.New(fault.Data, op, path, "%v", err).Then("train again")
	}
	if !s.Metrics.isConsistent() {
		return nil, fault.New(fault.Data, op, path, "per_class does not match the %d classes of \"classes\"",
			len(s.Metrics.Classes)).Then("train again")
	}
	return s, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Log returns the writer of log.txt. It stores lines until Begin or Continue creates the file.
func (f *Folder) Log() io.Writer {
	if f.log == nil {
		return &f.early
	}
	return f.log
}

// WriteConfig writes config.toml.
func (f *Folder) WriteConfig(v any) error {
	return durable.Write(op, filepath.Join(f.dir, configFile), func(w io.Writer) error { return toml.NewEncoder(w).Encode(v) })
}

// WriteSummary writes summary.json.
func (f *Folder) WriteSummary(s Summary) error {
	text, err := JSON(s)
	if err != nil {
		return err
	}
	return durable.WriteFile(op, filepath.Join(f.dir, summaryFile), text, durable.Perm)
}

// JSON returns a value as indented JSON, with each list of numbers on one line.
func JSON(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fault.New(fault.Runtime, op, "", "%v", err).Then("report this as a bug")
	}
	return append(onOneLine(text), '\n'), nil
}

// numberList matches an indented list of numbers. It cannot match within a string, because a JSON
// string has no line feed.
var numberList = regexp.MustCompile(`\[\n[-+.eE\d,\s]*\]`)

// onOneLine puts each list of numbers of indented JSON on one line.
func onOneLine(text []byte) []byte {
	return numberList.ReplaceAllFunc(text, func(list []byte) []byte {
		joined := bytes.Join(bytes.Fields(list), []byte(" "))
		return bytes.ReplaceAll(bytes.ReplaceAll(joined, []byte("[ "), []byte("[")), []byte(" ]"), []byte("]"))
	})
}

// WriteModel writes model.safetensors.
func (f *Folder) WriteModel(tensors []safetensors.Tensor, metadata map[string]string) error {
	return safetensors.Write(filepath.Join(f.dir, modelFile), tensors, metadata)
}

// Present returns a fault of kind IO if the folder has been removed or replaced since Begin or Continue. Writers call it
// first: they would create a part of the folder again, or write files that nobody can open.
func (f *Folder) Present() error {
	path := filepath.Join(f.dir, metricsFile)
	now, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.System(op, path, err)
	}
	own, ownErr := f.metrics.Stat()
	if ownErr != nil {
		return fault.System(op, path, ownErr)
	}
	if err == nil && os.SameFile(now, own) {
		return nil
	}
	return &fault.Error{
		Kind: fault.IO, Op: op, Path: f.dir, Detail: "removed or replaced while the run was writing", Err: fs.ErrNotExist,
		Remedy: "start the run again",
	}
}

// AppendEpoch writes one line of metrics.jsonl with a single write, and appends to the event file
// if there is one.
func (f *Folder) AppendEpoch(e Epoch) error {
	if err := f.Present(); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fault.New(fault.Runtime, op, filepath.Join(f.dir, metricsFile), "epoch %d: %v", e.Epoch, err).
			Then("lower --lr: the loss is not a finite number")
	}
	if _, err := f.metrics.Write(append(line, '\n')); err != nil {
		return fault.System(op, filepath.Join(f.dir, metricsFile), err)
	}
	return f.appendEvent(&e)
}
