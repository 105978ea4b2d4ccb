package runfolder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"siafu/graph/fault"
)

// Run is a run folder that was read.
type Run struct {
	Dir     string
	Config  string // text of config.toml
	Epochs  []Epoch
	Summary Summary
	Model   string // path of model.safetensors
}

// Read reads the folder of a run that has ended. Faults have kind Missing for
// a file that is not there, Data for one that is damaged.
func Read(dir string) (*Run, error) {
	r := &Run{Dir: dir, Model: filepath.Join(dir, modelFile)}
	summary, err := readSummary(dir)
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Kind == fault.Missing {
		return nil, f.Then("%s is no run folder, or its run has not ended", dir)
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
	r.Epochs, err = readEpochs(filepath.Join(dir, metricsFile))
	return r, err
}

func readEpochs(path string) ([]Epoch, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	return ParseEpochs(path, text)
}

// ParseEpochs reads the text of metrics.jsonl. A line that is no epoch is a
// Data fault that names it.
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

// Report compares runs in an aligned table.
func Report(w io.Writer, runs ...*Run) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	priced := slices.ContainsFunc(runs, func(r *Run) bool { return r.Summary.CostUSD > 0 })
	head := "run\tdataset\tmodel\tranks\tepochs\ttest acc\tmajority\ts/epoch\tseconds\tpeak MiB\tghost MiB\tsent MiB"
	if priced {
		head += "\tinvocations\twasted\tserver USD\tlambda USD\tUSD\tvalue"
	}
	fmt.Fprintln(t, head)
	for _, r := range runs {
		s := r.Summary
		name := fmt.Sprintf("%s %dx%d", s.Model, s.Layers, s.Hidden)
		if s.Layers == 1 {
			name = s.Model + " 1"
		}
		dataset := s.Dataset
		if s.Synthetic {
			dataset += " (generated)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d+%d\t%d\t%.4f\t%.4f\t%.4f\t%.1f\t%d\t%.1f\t%.1f",
			r.Dir, dataset, name, s.Ranks-s.Servers, s.Servers, s.Epochs, s.TestAccAtBestVal, s.MajorityTestAcc,
			s.EpochSecondsMedian, s.TotalSeconds, s.PeakRSSBytes>>20,
			float64(s.GhostBytesRaw)/(1<<20), float64(s.GhostBytesSent)/(1<<20))
		if priced {
			fmt.Fprintf(t, "\t%d\t%d\t%.6f\t%.6f\t%.6f\t%.6g", s.LambdaInvocations, s.LambdaWasted, s.ServerUSD, s.LambdaUSD, s.CostUSD, s.Value)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range runs {
		if err := r.conclude(w); err != nil {
			return err
		}
	}
	return nil
}

// Predictions is the folder below a run folder that predictions go to unless
// told otherwise.
const Predictions = "predictions"

// conclude says in a sentence how well a run did and where its files lie.
func (r *Run) conclude(w io.Writer) error {
	s := r.Summary
	line := fmt.Sprintf("%s on %s answers %.1f %% of the test vertices right (always the most frequent class: %.1f %%); model in %s",
		s.Model, s.Dataset, 100*s.TestAccAtBestVal, 100*s.MajorityTestAcc, r.Model)
	if s.StoppedBy == Diverged {
		line = fmt.Sprintf("%s on %s diverged in epoch %d: lower --lr", s.Model, s.Dataset, s.Epochs)
		if s.BestEpoch > 0 {
			line += fmt.Sprintf("; the best weights before answer %.1f %% of the test vertices right; model in %s", 100*s.TestAccAtBestVal, r.Model)
		}
	}
	if dir := filepath.Join(r.Dir, Predictions); taken(dir) {
		line += ", predictions in " + dir
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
