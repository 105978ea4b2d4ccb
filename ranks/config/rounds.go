package config

// With --local-epochs N training is divided into rounds of N epochs. Ranks have the same
// weights between two rounds, and their own weights within a round.

// Shared reports whether all ranks start an epoch from the same weights.
func (c *Config) Shared(epoch int) bool {
	return c.LocalEpochs == 0 || (epoch-1)%c.LocalEpochs == 0 || epoch > c.Epochs
}

// Evaluates reports whether the weights at the start of an epoch are evaluated. If ranks
// have their own weights when an evaluation is due, the next shared weights are evaluated.
func (c *Config) Evaluates(epoch int) bool {
	before := epoch - max(c.LocalEpochs, 1)
	return c.EvalEvery > 0 && c.Shared(epoch) && (before < 1 || (epoch-1)/c.EvalEvery > (before-1)/c.EvalEvery)
}

// Evaluations returns the number of evaluations before the last epoch is trained.
func (c *Config) Evaluations() int {
	if c.EvalEvery == 0 || c.Epochs == 0 {
		return 0
	}
	round := max(c.LocalEpochs, 1)
	others := (c.Epochs - 1) / round // rounds after the first
	return 1 + min(others, others*round/c.EvalEvery)
}

// Step returns the number of the optimiser's step in an epoch, from 1, or of the k-th
// correction after it.
func (c *Config) Step(epoch, k int) int {
	return epoch + c.ServerCorrection*((epoch-1)/max(c.LocalEpochs, 1)) + k
}

// Corrections returns the number of steps that all ranks take together in a whole run:
// after each round, including the last.
func (c *Config) Corrections() int {
	if c.LocalEpochs == 0 {
		return 0
	}
	return c.ServerCorrection * ((c.Epochs + c.LocalEpochs - 1) / c.LocalEpochs)
}

// LossShare returns the factor of the gradient on each of the given number of ranks. With
// it, the mean of the ranks' own steps is the step on the mean loss over all training
// vertices.
func (c *Config) LossShare(ranks int) int {
	if c.LocalEpochs > 0 {
		return ranks
	}
	return 1
}
