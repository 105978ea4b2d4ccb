package config

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/ranks/stopping"
)

// Values of --class-weights beside a list.
const (
	weightsOff      = "off"
	weightsBalanced = "balanced"
	weightsRoot     = "root"
)

// Weights parses --class-weights for a dataset. It returns one weight per class, or the
// power of balanced weights, 1 or 1/2, or neither (nil and 0) if all classes have the same
// weight. Without a dataset (nil) the list has the given values.
func (c *Config) Weights(m *graph.Meta) (list []float64, power float64, err error) {
	switch c.ClassWeights {
	case "", weightsOff:
		return nil, 0, nil
	case weightsBalanced:
		return nil, 1, nil
	case weightsRoot:
		return nil, 0.5, nil
	}
	if strings.Contains(c.ClassWeights, "=") {
		list, err = c.namedWeights(m)
		return list, 0, err
	}
	for text := range strings.SplitSeq(c.ClassWeights, ",") {
		w, err := c.weight(text)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, w)
	}
	if m != nil && len(list) != m.Classes {
		return nil, 0, fault.New(fault.Usage, "train", "", "--class-weights has %d weights for %d classes", len(list), m.Classes).
			Then("give one for each class")
	}
	return list, 0, nil
}

func (c *Config) weight(text string) (float64, error) {
	w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(w >= 0) || math.IsInf(w, 1) {
		return 0, fault.New(fault.Usage, "train", "", "--class-weights=%s: %q is not a valid weight", c.ClassWeights, text).
			Then("it must be balanced, root, off, a number of 0 or more for each class, such as 1,2.5,0.5, or weights by class " +
				"name, such as fraud=10,legit=1")
	}
	return w, nil
}

// namedWeights parses weights of the form NAME=W,…. Classes that are not named have weight 1. A name
// with a comma must be quoted together with its weight, as in CSV.
func (c *Config) namedWeights(m *graph.Meta) ([]float64, error) {
	refuse := func(remedy, format string, args ...any) error {
		return fault.New(fault.Usage, "train", "", "--class-weights=%s: "+format,
			slices.Concat([]any{c.ClassWeights}, args)...).Then("%s", remedy)
	}
	reader := csv.NewReader(strings.NewReader(c.ClassWeights))
	reader.TrimLeadingSpace = true
	pairs, err := reader.Read()
	if err != nil {
		return nil, refuse(`quote a name that contains a comma or a quote, as in "a, b=2"`, "%v", err)
	}
	var list []float64
	names := map[string]int{}
	if m != nil {
		list = slices.Repeat([]float64{1}, m.Classes)
		for class := range m.Classes {
			names[m.ClassName(int64(class))] = class
		}
	}
	given := map[string]bool{}
	for _, pair := range pairs {
		at := strings.LastIndex(pair, "=")
		if at < 0 {
			return nil, refuse("give all weights by name, or one for each class", "%q has no name", pair)
		}
		name := strings.TrimSpace(pair[:at])
		w, err := c.weight(pair[at+1:])
		if err != nil {
			return nil, err
		}
		class, known := names[name]
		switch {
		case given[name]:
			return nil, refuse("give each class one weight", "class %q is given twice", name)
		case m != nil && !known:
			return nil, refuse("the classes are "+someNames(m), "%q has no class %q", m.Name, name)
		case m != nil:
			list[class] = w
		}
		given[name] = true
	}
	return list, nil
}

// someNames returns the names of classes, at most 20.
func someNames(m *graph.Meta) string {
	const most = 20
	var names []string
	for class := range min(m.Classes, most) {
		names = append(names, strconv.Quote(m.ClassName(int64(class))))
	}
	text := strings.Join(names, ", ")
	if m.Classes > most {
		text += fmt.Sprintf(" and %d more", m.Classes-most)
	}
	return text
}

// Weighs reports whether classes have weights.
func (c *Config) Weighs() bool { return c.ClassWeights != "" && c.ClassWeights != weightsOff }

// otherNames has scikit-learn's names of metrics.
var otherNames = map[string]string{"f1_micro": "micro_f1", "f1_macro": "macro_f1", "f1_weighted": "weighted_f1", "auc": "roc_auc"}

// monitors returns a fault if the task does not have the monitored metric.
func (c *Config) monitors(task string, m *graph.Meta) error {
	if !stopping.IsMetric(c.Monitor) {
		return nil
	}
	names := objective.MetricsOf(task, m.Classes)
	if task == graph.Links {
		var pairs graph.LinkCounts
		if m.Links != nil {
			pairs = *m.Links
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			if m.Relations != nil {
				return objective.HitsNeed(name) > objective.MostRanked
			}
			return name == "mrr" && pairs.Ranked == 0 || name == "hits@1" || name == "hits@3" || objective.HitsNeed(name) > pairs.NotVal
		})
	}
	if slices.Contains(names, c.Monitor) {
		return nil
	}
	return fault.New(fault.Usage, "train", "", "--monitor=%s with the task %s (%d outputs), which does not have this metric",
		c.Monitor, task, c.Outputs(m)).
		Then("use loss, both, penalised, %s", strings.Join(names, ", "))
}

// TaskOf returns the task of a network on a dataset: --task, or the task of the dataset's
// labels. The fault has kind Usage if labels or other flags do not match the task.
func (c *Config) TaskOf(m *graph.Meta) (string, error) {
	task := cmp.Or(c.Task, m.Task)
	if err := c.monitors(task, m); err != nil {
		return "", err
	}
	refuse := func(remedy, format string, args ...any) (string, error) {
		return "", fault.New(fault.Usage, "train", "", format, args...).Then("%s", remedy)
	}
	switch {
	case m.Task != graph.Links && task == graph.Links:
		return refuse("run siafu holdout, and train on the dataset that it writes", "--task=links on a dataset without held-out edges")
	case m.Task == graph.Links && task != graph.Links:
		return refuse("leave --task out, or train on the input dataset of siafu holdout",
			"--task=%s on a dataset with held-out edges, which has no labels", task)
	case task == graph.Links && c.scoresTriples() && m.Relations == nil:
		return refuse("set it to dot or mlp, or train on a relational graph", "--link-score=%s on edges without relations", c.LinkScore)
	case task == graph.Links && c.LinkScore == linkPerceptron && m.Relations != nil:
		return refuse("set it to dot, distmult or complex", "--link-score=%s on a relational graph", c.LinkScore)
	case task == graph.Links && c.LinkScore == string(model.ComplEx) && c.Embedding%2 > 0:
		return refuse("set an even number: half of the columns are imaginary parts", "--embedding=%d with --link-score=%s",
			c.Embedding, c.LinkScore)
	case task == graph.Links:
		return task, situation{Config: c, task: task}.refuse("train", linkConflicts)
	case c.LinkScore == linkPerceptron || c.scoresTriples():
		return refuse("leave --link-score out: there are no pairs to score", "--link-score=%s with the task %s",
			c.LinkScore, cmp.Or(task, m.Task))
	case m.Task == graph.MultiClass && task == graph.Regression:
		return refuse("import the dataset again with --task regression", "--task=%s on labels that are classes", task)
	case m.Task != graph.MultiClass && task == graph.MultiClass:
		return refuse("leave --task out, or import one column of classes", "--task=%s on labels for %s", task, m.Task)
	case task == graph.Regression && (c.LabelSmoothing > 0 || c.Weighs()):
		return refuse("leave both out: there are no classes", "--label-smoothing=%g --class-weights=%s with regression", c.LabelSmoothing,
			cmp.Or(c.ClassWeights, weightsOff))
	}
	_, _, err := c.Weights(m)
	return task, err
}

// linkPerceptron is the value of --link-score for a model.Head.
const linkPerceptron = "mlp"

// scoresTriples reports whether --link-score has weights for relations.
func (c *Config) scoresTriples() bool {
	return c.LinkScore == string(model.DistMult) || c.LinkScore == string(model.ComplEx)
}

// Outputs returns the width of the last layer on a dataset.
func (c *Config) Outputs(m *graph.Meta) int {
	if m.Task == graph.Links {
		return max(c.Embedding, 1)
	}
	return m.Classes
}
