package runfolder

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/BurntSushi/toml"

	"siafu/internal/fault"
)

// Progress is the progress of a run that may not have ended.
type Progress struct {
	Planned int       // configured epochs; the run may stop earlier
	Done    int       // trained epochs
	Last    Epoch     // the newest line of metrics, zero before the first
	ValAcc  *float64  // the newest validation accuracy
	Seconds float64   // median duration of an epoch
	Written time.Time // time of the newest line
	Summary *Summary  // nil: the run has not ended
}

// Left estimates the duration of the remaining epochs.
func (p *Progress) Left() time.Duration {
	return time.Duration(float64(max(p.Planned-p.Done, 0)) * p.Seconds * float64(time.Second))
}

// ReadProgress reads the folder of a run that may still be running. It returns the faults of Read.
func ReadProgress(dir string) (*Progress, error) {
	p := &Progress{}
	path := filepath.Join(dir, configFile)
	var config struct{ Epochs int }
	if _, err := toml.DecodeFile(path, &config); err != nil {
		if parse := (toml.ParseError{}); errors.As(err, &parse) {
			return nil, fault.New(fault.Data, op, path, "line %d: %s", parse.Position.Line, parse.Message).Then("train again")
		}
		return nil, fault.System(op, path, err)
	}
	p.Planned = config.Epochs
	if err := p.readMetrics(dir); err != nil {
		return nil, err
	}
	var err error
	if p.Summary, err = readSummary(dir); fault.KindOf(err) == fault.Missing {
		err = nil
	}
	return p, err
}

func (p *Progress) readMetrics(dir string) error {
	var seconds []float64
	err := EachEpoch(dir, func(e *Epoch) {
		if e.ValAcc != nil {
			p.ValAcc = e.ValAcc
		}
		seconds = append(seconds, e.Seconds)
		p.Last, p.Done = *e, e.Epoch
	})
	if info, err := os.Stat(filepath.Join(dir, metricsFile)); err == nil {
		p.Written = info.ModTime()
	}
	p.Seconds = Median(seconds)
	return err
}

// MedianSeconds returns the median duration of epochs; 0 without epochs.
func MedianSeconds(epochs []Epoch) float64 {
	seconds := make([]float64, len(epochs))
	for i, e := range epochs {
		seconds[i] = e.Seconds
	}
	return Median(seconds)
}

// Median returns the median of x; 0 if x is empty.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// IsRun reports whether a folder has the files of a run that has begun.
func IsRun(dir string) bool {
	return exists(filepath.Join(dir, configFile)) && exists(filepath.Join(dir, metricsFile))
}
