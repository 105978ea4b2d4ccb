package config

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/graph/fault"
)

// Values of --class-weights beside a list.
const (
	weightsOff      = "off"
	weightsBalanced = "balanced"
	weightsRoot     = "root"
)

// Weights are those of --class-weights: a list, or the power of balanced ones that is
// wanted, 1 or 1/2; neither (nil and 0) where classes weigh the same.
func (c *Config) Weights() (list []float64, power float64, err error) {
	switch c.ClassWeights {
	case "", weightsOff:
		return nil, 0, nil
	case weightsBalanced:
		return nil, 1, nil
	case weightsRoot:
		return nil, 0.5, nil
	}
	for text := range strings.SplitSeq(c.ClassWeights, ",") {
		w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(w >= 0) || math.IsInf(w, 1) {
			return nil, 0, fault.New(fault.Usage, "train", "", "--class-weights=%s: %q is no weight", c.ClassWeights, text).
				Then("it must be balanced, root, off or a number from 0 for each class, as 1,2.5,0.5")
		}
		list = append(list, w)
	}
	return list, 0, nil
}

// Weighs tells whether classes have weights.
func (c *Config) Weighs() bool { return c.ClassWeights != "" && c.ClassWeights != weightsOff }

// checkTask refuses what flags alone say to be wrong about the task.
func (c *Config) checkTask() error {
	if _, _, err := c.Weights(); err != nil {
		return err
	}
	return nil
}

// TaskOf is what a network is trained for on a dataset: what its labels are for, or what
// --task says. Kind Usage where its labels or other flags do not go with that.
func (c *Config) TaskOf(m *graph.Meta) (string, error) {
	task := cmp.Or(c.Task, m.Task)
	refuse := func(remedy, format string, args ...any) (string, error) {
		return "", fault.New(fault.Usage, "train", "", format, args...).Then("%s", remedy)
	}
	switch {
	case m.Task != graph.Links && task == graph.Links:
		return refuse("hold edges out of it with siafu holdout, and train on the dataset that comes of it", "--task=links on a dataset without held edges")
	case m.Task == graph.Links && task != graph.Links:
		return refuse("leave --task out, or train on the dataset that edges were held out of", "--task=%s on a dataset with held edges, which has no labels", task)
	case task == graph.Links:
		return task, c.checkLinks()
	case c.LinkScore == linkPerceptron:
		return refuse("leave --link-score out: there are no pairs to score", "--link-score=%s with the task %s", c.LinkScore, cmp.Or(task, m.Task))
	case m.Task == graph.MultiClass && task == graph.Regression:
		return refuse("import the dataset again with --task regression", "--task=%s on labels that are classes", task)
	case m.Task != graph.MultiClass && task == graph.MultiClass:
		return refuse("leave --task out, or import one column of classes", "--task=%s on labels for %s", task, m.Task)
	case task == graph.Regression && (c.LabelSmoothing > 0 || c.Weighs()):
		return refuse("leave both out: there are no classes", "--label-smoothing=%g --class-weights=%s with regression", c.LabelSmoothing, cmp.Or(c.ClassWeights, weightsOff))
	}
	return task, nil
}

// linkPerceptron is what --link-score calls model.Head.
const linkPerceptron = "mlp"

// checkLinks refuses what does not go together with link prediction.
func (c *Config) checkLinks() error {
	refuse := func(remedy, format string, args ...any) error {
		return fault.New(fault.Usage, "train", "", format+" with the task links", args...).Then("%s", remedy)
	}
	const together = ": pairs of any vertices are scored when the whole graph has its embeddings"
	switch {
	case c.Asynchronous():
		return refuse("leave --mode out"+together, "--mode=%s", c.Mode)
	case c.Batches() > 0:
		return refuse("leave --batch out"+together, "--batch=%s", c.Batch)
	case c.LocalEpochs > 0:
		return refuse("leave --local-epochs out: ends of pairs are on different ranks", "--local-epochs=%d", c.LocalEpochs)
	case c.Tensor == TensorLambda:
		return refuse("use --tensor cpu or cuda"+together, "--tensor=%s", c.Tensor)
	case c.GPUsApply():
		return refuse("leave --graph out"+together, "--tensor=cuda --graph=cpu")
	case c.LabelSmoothing > 0 || c.Weighs():
		return refuse("leave both out: there are no classes", "--label-smoothing=%g --class-weights=%s", c.LabelSmoothing, cmp.Or(c.ClassWeights, weightsOff))
	}
	return nil
}

// Outputs is how wide the last layer is on a dataset.
func (c *Config) Outputs(m *graph.Meta) int {
	if m.Task == graph.Links {
		return max(c.Embedding, 1)
	}
	return m.Classes
}
