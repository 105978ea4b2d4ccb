// Package sweep trains once for each combination of some flags' values. Each training is
// a separate process, so a failure does not affect the others, and each reports its own
// memory. The run folder of a training is named after its setting. An interrupted
// training resumes there, and a finished training is not repeated.
package sweep
