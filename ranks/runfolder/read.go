package runfolder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"siafu/internal/fault"

	"github.com/BurntSushi/toml"
)

// Run is the content of a run folder.
type Run struct {
	Dir     string
	Config  string // text of config.toml
	Epochs  []Epoch
	Summary Summary
	Model   string // path of model.safetensors
	Log     string // path of log.txt
}

// Read reads the folder of a run that has ended. The kind of a fault is Missing for a missing file
// and Data for a damaged one.
func Read(dir string) (*Run, error) {
	r := &Run{Dir: dir, Model: filepath.Join(dir, modelFile), Log: filepath.Join(dir, logFile)}
	summary, err := readSummary(dir)
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Kind == fault.Missing {
		return nil, f.Then("%s is not a run folder, or its run has not ended", dir)
	}
	if err != nil {
		return nil, err
	}
	r.Summary = *summary
	config, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil {
		return nil, fault.System(op, filepath.Join(dir, configFile), err)
	}
	r.Config = string(config)
	r.Epochs, err = readEpochs(dir, true)
	return r, err
}

// ReadConfig reads the config.toml of a run folder.
func ReadConfig(dir string, v any) error {
	_, err := toml.DecodeFile(filepath.Join(dir, configFile), v)
	return err
}

// ReadEpochs reads the epochs of a run folder, which a run may still be writing.
func ReadEpochs(dir string) ([]Epoch, error) { return readEpochs(dir, false) }

func readEpochs(dir string, ended bool) ([]Epoch, error) {
	path := filepath.Join(dir, metricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	if !ended { // the text after the last newline may be an incomplete line
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return ParseEpochs(path, text)
}

// ParseEpochs reads the text of metrics.jsonl. An invalid line is a Data fault with its number.
func ParseEpochs(path string, text []byte) ([]Epoch, error) {
	var epochs []Epoch
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e Epoch
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fault.New(fault.Data, op, path, "line %d: %v", n, err).Then("train again")
		}
		epochs = append(epochs, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.Data, op, path, "%v", err).Then("train again")
	}
	return epochs, nil
}

// EpochsUpTo returns the lines of metrics.jsonl up to an epoch, as text and as values. A process that
// was killed may have left an incomplete last line.
func EpochsUpTo(run string, epoch int) (text []byte, epochs []Epoch, err error) {
	path := filepath.Join(run, metricsFile)
	text, err = os.ReadFile(path)
	if err != nil {
		return nil, nil, fault.System(op, path, err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	all, err := ParseEpochs(path, text)
	if err != nil {
		return nil, nil, err
	}
	length := 0
	for _, e := range all {
		if e.Epoch > epoch {
			break
		}
		length += bytes.IndexByte(text[length:], '\n') + 1
		epochs = append(epochs, e)
	}
	return text[:length], epochs, nil
}

// Predictions is the default folder of predictions below a run folder.
const Predictions = "predictions"

// HasPredictions reports whether the run has a folder of predictions.
func HasPredictions(run string) bool { return exists(filepath.Join(run, Predictions)) }
