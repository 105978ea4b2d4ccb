package runfolder

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
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

func readEpochs(dir string, ended bool) (epochs []Epoch, err error) {
	err = eachEpoch(filepath.Join(dir, metricsFile), ended, func(e *Epoch, _ int64) bool {
		epochs = append(epochs, *e)
		return true
	})
	if err != nil {
		return nil, err
	}
	return epochs, nil
}

// Lines is a prefix of a metrics.jsonl that ends with a complete line. The zero value has no lines.
type Lines struct {
	Path  string
	Bytes int64
}

// LinesUpTo returns the lines of a run folder up to an epoch, and the epoch of the last one, 0 without lines.
func LinesUpTo(run string, epoch int) (l Lines, last int, err error) {
	l.Path = filepath.Join(run, metricsFile)
	err = eachEpoch(l.Path, false, func(e *Epoch, end int64) bool {
		if e.Epoch > epoch {
			return false
		}
		l.Bytes, last = end, e.Epoch
		return true
	})
	return l, last, err
}

// Each calls f with each epoch, in order. It reads one line at a time.
func (l Lines) Each(f func(e *Epoch)) error {
	if l.Bytes == 0 {
		return nil
	}
	return eachEpoch(l.Path, false, func(e *Epoch, end int64) bool {
		if end <= l.Bytes {
			f(e)
		}
		return end < l.Bytes
	})
}

// copyTo appends the lines to another file.
func (l Lines) copyTo(to *os.File) error {
	if l.Bytes == 0 {
		return nil
	}
	from, err := os.Open(l.Path)
	if err != nil {
		return fault.System(op, l.Path, err)
	}
	defer from.Close()
	if _, err := io.CopyN(to, from, l.Bytes); err != nil {
		return fault.System(op, to.Name(), err)
	}
	return nil
}

// EachEpoch calls f with each epoch of a run folder, which a run may still be writing. It reads one line at a time.
func EachEpoch(dir string, f func(e *Epoch)) error {
	return eachEpoch(filepath.Join(dir, metricsFile), false, func(e *Epoch, _ int64) bool {
		f(e)
		return true
	})
}

func eachEpoch(path string, ended bool, f func(e *Epoch, end int64) bool) error {
	file, err := os.Open(path)
	if err != nil {
		return fault.System(op, path, err)
	}
	defer file.Close()
	return scanEpochs(path, file, ended, f)
}

// longestLine is the maximal length of a line of metrics.jsonl.
const longestLine = 1 << 20

// scanEpochs calls f with each epoch of metrics.jsonl and the number of bytes up to its end, until f returns false. An
// invalid line is a Data fault with its number. The text after the last newline is a line only if the run has ended:
// else it may be incomplete.
func scanEpochs(path string, from io.Reader, ended bool, f func(e *Epoch, end int64) bool) error {
	lines, end := bufio.NewReaderSize(from, longestLine), int64(0)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF && (len(line) == 0 || !ended):
			return nil
		case err == bufio.ErrBufferFull:
			return fault.New(fault.Data, op, path, "line %d has more than %d bytes", n, longestLine).Then("train again")
		case err != nil && err != io.EOF:
			return fault.System(op, path, err)
		}
		end += int64(len(line))
		var e Epoch
		if err := json.Unmarshal(line, &e); err != nil {
			return fault.New(fault.Data, op, path, "line %d: %v", n, err).Then("train again")
		}
		if !f(&e, end) {
			return nil
		}
	}
}

// Predictions is the default folder of predictions below a run folder.
const Predictions = "predictions"

// HasPredictions reports whether the run has a folder of predictions.
func HasPredictions(run string) bool { return exists(filepath.Join(run, Predictions)) }
