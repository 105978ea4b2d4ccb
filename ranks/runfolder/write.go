package runfolder

import (
	"bytes"
	"encoding/json"
	"io"
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

// Metrics is the file of a run folder with a line an epoch.
const Metrics = "metrics.jsonl"

// Files of a run folder.
const (
	// KnownFile is written by package known, ScriptFile by package pytorch.
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

// temporary is the name of a file that is not whole.
var temporary = inventory.Pattern(`.*` + scratch.Suffix)

// isTemporary reports whether a name is that of a file of ours that is not whole.
func isTemporary(name string) bool {
	return temporary.MatchString(name) && slices.ContainsFunc(own, func(e inventory.Entry) bool { return e.Name.MatchString(name) })
}

// Ended returns the summary of the run in a folder, nil where there is none that has
// ended.
func Ended(dir string) *Summary {
	s, err := readSummary(dir)
	if err != nil {
		return nil
	}
	return s
}

// readSummary reads the summary of a run. Faults have kind Missing where there is
// none.
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
		return nil, fault.New(fault.Data, op, path, "per_class does not match the %d classes of \"classes\"", len(s.Metrics.Classes)).Then("train again")
	}
	return s, nil
}

func taken(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Log is log.txt. What is written before the folder is, is kept for it.
func (f *Folder) Log() io.Writer {
	if f.log == nil {
		return &f.early
	}
	return f.log
}

// WriteConfig writes config.toml.
func (f *Folder) WriteConfig(v any) error {
	return f.whole(configFile, func(w io.Writer) error { return toml.NewEncoder(w).Encode(v) })
}

// WriteSummary writes summary.json.
func (f *Folder) WriteSummary(s Summary) error {
	text, err := JSON(s)
	if err != nil {
		return err
	}
	return f.whole(summaryFile, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// JSON returns a value as indented JSON, with each list of numbers on one line.
func JSON(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fault.New(fault.Runtime, op, "", "%v", err).Then("report this as a bug")
	}
	return append(onOneLine(text), '\n'), nil
}

// numberList matches an indented list of numbers. No string has a line feed.
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

// AppendEpoch writes one line of metrics.jsonl, and the event file if there is one; a
// reader sees whole lines.
func (f *Folder) AppendEpoch(e Epoch) error {
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

// whole writes a file that appears whole or not at all.
func (f *Folder) whole(name string, fill func(io.Writer) error) error {
	return durable.Write(op, filepath.Join(f.dir, name), fill)
}
