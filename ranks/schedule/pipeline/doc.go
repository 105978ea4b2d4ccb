// Package pipeline schedules the microbatches of a step over the stages of a pipeline, as lists of
// instructions (Bamboo, NSDI'23, §3.2, §3.4 and figure 3.6).
//
// A stage is a number of consecutive layers. Stage s sends activations to stage s+1 and gradients to
// stage s-1. The successor of the last stage is stage 0: only redundant computation uses this
// neighbourhood (§3.5.1). Settings.Of returns the list of a stage, which an interpreter executes in
// order. Each kind of work on a stage is done in ascending order of microbatches, with every schedule and
// redundancy. So sums over microbatches do not depend on the settings.
//
// An interpreter must guarantee that a send does not wait for its receive. Then no list waits for ever:
// forward passes wait only for forward passes of earlier stages, backward passes only for backward passes
// of later stages, and each list has the forward pass of a microbatch before the backward pass.
//
// The package has neither messages nor tensors nor goroutines. Start reading at Instruction.
package pipeline
