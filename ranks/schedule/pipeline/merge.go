package pipeline

import (
	"cmp"
	"slices"
)

// Merge returns the failover schedule of a shadow: its own instructions and those of its victim (§3.5.2).
// The lists are those of two stages for the same settings, whole or what Resume leaves of them. The result
// has neither messages between the two stages nor redundant work for or by the victim. An empty list leaves
// the other one as it is.
//
// The result is a sequence of groups. A group has at most one pass of each list whose data are on this rank
// or arrive with the messages of the group. In a group are, in this order: sends of the victim, sends of the
// shadow, receives of the victim, receives of the shadow, backward passes, forward passes. So receives of
// the victim may follow sends of the shadow, but sends do not wait. Reduce and Apply of both stages end the
// list in ascending order of stages, which is the same on all pipelines.
//
// If the victim is stage 0, the P-2 stages between the two need time: a pass waits for P-2 groups after the
// message that it depends on. Otherwise the rank would wait for one microbatch at a time.
func Merge(shadow, victim []Instruction) []Instruction {
	if len(shadow) == 0 || len(victim) == 0 {
		return append(slices.Clone(shadow), victim...)
	}
	m := &merger{}
	m.victim.stage, m.shadow.stage = victim[len(victim)-1].Stage, shadow[len(shadow)-1].Stage
	m.take(&m.victim, victim, m.shadow.stage)
	m.take(&m.shadow, shadow, m.victim.stage)
	slices.SortStableFunc(m.tail, func(a, b Instruction) int { return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Stage, b.Stage)) })
	for idle := 0; !m.victim.empty() || !m.shadow.empty(); m.group++ {
		before := len(m.list)
		m.sends(&m.victim)
		m.sends(&m.shadow)
		m.passes()
		if idle++; len(m.list) > before {
			idle = 0
		} else if idle > m.between()+1 {
			panic("pipeline: lists of different steps")
		}
	}
	return append(m.list, m.tail...)
}

// merger merges the lists of two stages.
type merger struct {
	victim, shadow side
	list, tail     []Instruction
	group          int
}

// side is one of the two lists.
type side struct {
	stage int
	list  []Instruction // without messages to the other side
	// local has the passes whose input is a result of the other side, with the pass that yields it.
	local map[Instruction]Instruction
	sent  map[Instruction]int // groups of the sends, by the instruction; of sends in list: not yet
}

const notYet = -1

func (s *side) empty() bool { return len(s.list) == 0 }

// take divides a list into its side and the tail.
func (m *merger) take(s *side, list []Instruction, other int) {
	s.local, s.sent = map[Instruction]Instruction{}, map[Instruction]int{}
	for _, i := range list {
		switch {
		case i.Op.Redundant() && (s == &m.victim || i.Stage == other || i.Peer == other):
		case i.Op == Reduce || i.Op == Apply:
			m.tail = append(m.tail, i)
		case i.Peer == other && i.Op == ReceiveActivations:
			s.local[Instruction{Forward, s.stage, i.Microbatch, None}] = Instruction{Forward, other, i.Microbatch, None}
		case i.Peer == other && i.Op == ReceiveGradients:
			s.local[Instruction{Backward, s.stage, i.Microbatch, None}] = Instruction{Backward, other, i.Microbatch, None}
		case i.Peer == other:
		default:
			if i.Op.Sends() {
				s.sent[i] = notYet
			}
			s.list = append(s.list, i)
		}
	}
}

// sends moves the sends at the head of a side to the result.
func (m *merger) sends(s *side) {
	for !s.empty() && s.list[0].Op.Sends() {
		s.sent[s.list[0]] = m.group
		m.list, s.list = append(m.list, s.list[0]), s.list[1:]
	}
}

// candidate is the next pass of a side, with the receives before it.
type candidate struct {
	side     *side
	receives []Instruction
	pass     Instruction
	ready    bool         // the messages can have arrived
	needs    *Instruction // the pass of the other side that must come before; nil: none
}

// candidate returns the next pass of a side. It is not ready if the side has none.
func (m *merger) candidate(s, other *side) candidate {
	n := 0
	for n < len(s.list) && s.list[n].Op.Receives() {
		n++
	}
	if n == len(s.list) {
		return candidate{}
	}
	c := candidate{side: s, receives: s.list[:n], pass: s.list[n], ready: m.arrive(s.list[:n], other)}
	if on, is := s.local[c.pass]; is && slices.Contains(other.list, on) {
		c.needs = &on
	}
	return c
}

// passes moves the next pass of each side to the result, if its data are there. The data may be the result of
// the other side's pass in the same group.
func (m *merger) passes() {
	v, s := m.candidate(&m.victim, &m.shadow), m.candidate(&m.shadow, &m.victim)
	var group []Instruction
	for _, pair := range [][2]candidate{{v, s}, {s, v}} {
		c, other := pair[0], pair[1]
		if !c.ready || c.needs != nil && (!other.ready || other.needs != nil || other.pass != *c.needs) {
			continue
		}
		m.list = append(m.list, c.receives...)
		group = append(group, c.pass)
		c.side.list = c.side.list[len(c.receives)+1:]
	}
	// Backward passes first. Of two backward passes, that of the later stage; of two forward passes, that of
	// the earlier stage: its result may be the input of the other one.
	slices.SortFunc(group, func(a, b Instruction) int {
		if a.Op != b.Op {
			return cmp.Compare(b.Op, a.Op)
		}
		if a.Op == Backward {
			return cmp.Compare(b.Stage, a.Stage)
		}
		return cmp.Compare(a.Stage, b.Stage)
	})
	m.list = append(m.list, group...)
}

// between returns the number of stages between the two.
func (m *merger) between() int {
	return max(m.victim.stage-m.shadow.stage, m.shadow.stage-m.victim.stage) - 1
}

// arrive reports whether messages can have arrived, if the other side sends what they depend on through the
// stages between the two.
func (m *merger) arrive(receives []Instruction, other *side) bool {
	first, last := min(m.victim.stage, m.shadow.stage), max(m.victim.stage, m.shadow.stage)
	if m.between() == 0 {
		return true
	}
	for _, i := range receives {
		on := Instruction{SendActivations, first, i.Microbatch, first + 1}
		if i.Op == ReceiveGradients {
			on = Instruction{SendGradients, last, i.Microbatch, last - 1}
		}
		if group, is := other.sent[on]; is && (group == notYet || m.group < group+m.between()) {
			return false
		}
	}
	return true
}
