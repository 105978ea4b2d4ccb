package config

import (
	"fmt"

	"siafu/graph/fault"
)

// With --local-epochs training goes in rounds of so many epochs. Ranks have the same
// weights between two rounds, and weights of their own within one.

// Shared tells whether all ranks have the weights that an epoch starts from.
func (c *Config) Shared(epoch int) bool {
	return c.LocalEpochs == 0 || (epoch-1)%c.LocalEpochs == 0 || epoch > c.Epochs
}

// Evaluates tells whether the weights that an epoch starts from are evaluated: those
// that are due, or where ranks have weights of their own the next that all have.
func (c *Config) Evaluates(epoch int) bool {
	before := epoch - max(c.LocalEpochs, 1)
	return c.EvalEvery > 0 && c.Shared(epoch) && (before < 1 || (epoch-1)/c.EvalEvery > (before-1)/c.EvalEvery)
}

// Evaluations are how many there are before the last epoch is trained.
func (c *Config) Evaluations() int {
	if c.EvalEvery == 0 || c.Epochs == 0 {
		return 0
	}
	round := max(c.LocalEpochs, 1)
	others := (c.Epochs - 1) / round // rounds behind the first
	return 1 + min(others, others*round/c.EvalEvery)
}

// Step is the number of the optimiser's step in an epoch, from 1, or of the k-th
// correction behind it.
func (c *Config) Step(epoch, k int) int {
	return epoch + c.ServerCorrection*((epoch-1)/max(c.LocalEpochs, 1)) + k
}

// Corrections are the steps of all ranks together in a run of all epochs: behind each
// round, the last one included.
func (c *Config) Corrections() int {
	if c.LocalEpochs == 0 {
		return 0
	}
	return c.ServerCorrection * ((c.Epochs + c.LocalEpochs - 1) / c.LocalEpochs)
}

// LossShare is by how much the gradient of the mean loss over all training vertices
// is multiplied on each of so many ranks, so that the mean of the steps that they take
// on their own is the step on the mean loss.
func (c *Config) LossShare(ranks int) int {
	if c.LocalEpochs > 0 {
		return ranks
	}
	return 1
}

// checkRounds refuses what does not go together with weights of a rank's own, and with
// corrections.
func (c *Config) checkRounds() error {
	refuse := func(flag string, value any, what, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--%s=%v %s", flag, value, what).Then("%s", remedy)
	}
	switch {
	case c.LocalEpochs > 0 && c.Asynchronous():
		return refuse("local-epochs", c.LocalEpochs, "with --mode="+c.Mode, "choose one of the two: ranks that do not go in step have no round to end together")
	case c.ServerCorrection > 0 && c.LocalEpochs == 0:
		return refuse("server-correction", c.ServerCorrection, "without --local-epochs", "say with --local-epochs how many epochs are between two corrections")
	case c.ServerCorrection > 0 && c.Exact():
		return refuse("server-correction", c.ServerCorrection, "with exact training", "choose --refresh never, or another one whose gradients need to be corrected")
	case c.ServerCorrection > 0 && c.Tensor == TensorLambda:
		return refuse("server-correction", c.ServerCorrection, "with --tensor=lambda", "leave one of the two out: a task is known by its epoch, and a correction has that of its round")
	case c.LocalEpochs > 0 && c.MeasureStaleness%c.LocalEpochs > 0:
		return refuse("measure-staleness", c.MeasureStaleness, fmt.Sprintf("with --local-epochs=%d", c.LocalEpochs), "measure after a multiple of the epochs of a round: within one ranks have weights of their own, and there is no exact gradient")
	case c.CorrectionBatch > 0 && c.ServerCorrection == 0:
		return refuse("correction-batch", c.CorrectionBatch, "without --server-correction", "say with --server-correction how many steps there are")
	}
	return nil
}
