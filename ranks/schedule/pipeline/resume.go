package pipeline

import "slices"

// Done counts, by operation, the microbatches for which a stage has completed it in a step. Microbatches are
// completed in ascending order. A send is complete when its receiver has reported the message as
// received; Reduce and Apply count 1. The zero Done is the begin of a step.
type Done [operations]int

// Resume returns the instructions of a list that remain. A send of a message that was lost remains, although
// the pass before it is complete: an interpreter must keep the messages of a step until its end.
func Resume(list []Instruction, done Done) []Instruction {
	return slices.DeleteFunc(slices.Clone(list), func(i Instruction) bool { return max(i.Microbatch, 0) < done[i.Op] })
}

// Protected returns what the rank of a shadow has of a lost successor: its redundant passes and the
// gradients that they received. The lost rank's own gradients are lost with it. Acknowledge adds
// the sends.
func (d Done) Protected() (lost Done) {
	lost[Forward], lost[Backward], lost[ReceiveGradients] = d[RedundantForward], d[RedundantBackward], d[ReceiveRedundantGradients]
	return lost
}

// Acknowledge sets the completed sends of each stage to the messages that their receivers have.
func (s Settings) Acknowledge(done []Done) {
	for stage := range done {
		if stage+1 < s.Stages {
			done[stage][SendActivations] = done[stage+1][ReceiveActivations]
		}
		if stage > 0 {
			done[stage][SendGradients] = done[stage-1][ReceiveGradients]
			done[stage][SendRedundantGradients] = done[s.Shadow(stage-1)][ReceiveRedundantGradients]
		}
	}
}

// Failover returns the lists of a step in which the stages of victims run on their shadows (§3.5.2). The
// list of a victim is nil. Done has the completed work by stage, that of a victim by Protected, with
// acknowledged sends; nil is the begin of a step. The shadow of a victim must not be a victim.
func (s Settings) Failover(victims []int, done []Done) [][]Instruction {
	lists := make([][]Instruction, s.Stages)
	for stage := range lists {
		lists[stage] = s.Of(stage)
		if done != nil {
			lists[stage] = Resume(lists[stage], done[stage])
		}
	}
	for _, victim := range victims {
		s.unprotect(lists, victim)
	}
	for _, victim := range victims {
		shadow := s.Shadow(victim)
		lists[shadow], lists[victim] = Merge(lists[shadow], lists[victim]), nil
	}
	return lists
}

// unprotect removes the redundant work for a victim, for its shadow and by the victim: a rank with two
// stages neither protects a stage nor is protected.
func (s Settings) unprotect(lists [][]Instruction, victim int) {
	over := []int{victim, s.Shadow(victim), s.Successor(victim)}
	for stage := range lists {
		lists[stage] = slices.DeleteFunc(lists[stage], func(i Instruction) bool {
			return i.Op.Redundant() && slices.Contains(over, i.Stage)
		})
	}
}
