package model

import (
	"slices"
)

// makers returns the events of dropped stages, by the values that they compute.
func (p *plan) makers(dropped []Do) map[ref]int {
	at := map[ref]int{}
	wanted := map[Do]bool{}
	for _, d := range dropped {
		wanted[d] = true
	}
	for i, e := range p.events {
		for _, r := range e.writes {
			if wanted[e.Do] {
				at[r] = i
			}
		}
	}
	return at
}

// repeat returns the order of events if dropped stages run again before their first use in the
// backward pass.
func (p *plan) repeat(makers map[ref]int) []event {
	if len(makers) == 0 {
		return p.events
	}
	var all []event
	done := map[int]bool{}
	for i, e := range p.events {
		if e.Stage.Backward() && e.Stage < Stages {
			// The input of a gather is recomputed in the tensor stage before it.
			needed := slices.Concat(e.reads, e.shared)
			if i+1 < len(p.events) && p.events[i+1].Stage == gatherBackward {
				needed = append(needed, p.events[i+1].shared...)
			}
			for _, d := range p.remade(needed, makers, done) {
				p.recomputed[e.Do] = append(p.recomputed[e.Do], d.Do)
				all = append(all, d)
			}
		}
		all = append(all, e)
	}
	return all
}

// remade returns the dropped stages that must run again for values not yet recomputed, each
// after the stages that it needs.
func (p *plan) remade(needed []ref, makers map[ref]int, done map[int]bool) (list []event) {
	for _, r := range needed {
		i, dropped := makers[r]
		if !dropped || done[i] {
			continue
		}
		done[i] = true
		e := p.events[i]
		list = append(list, p.remade(e.reads, makers, done)...)
		e.Again = true
		list = append(list, e)
	}
	return list
}

// mostAgain is the maximum number of consecutive stages to recompute for one value. With up to
// mostTried stages, each is tried without recomputation, in case that costs no memory; with
// more, the trials would take too long.
const (
	mostAgain = 2
	mostTried = 64
)

// recompute drops values that can be recomputed, except if storing them takes no more memory.
func (p *plan) recompute() {
	var dropped []Do
	depth, known := map[ref]int{}, p.know()
	for _, e := range p.events {
		if d := known.depth(e, depth); d > 0 && d <= mostAgain {
			dropped = append(dropped, e.Do)
			for _, r := range e.writes {
				depth[r] = d
			}
		}
	}
	p.layOut(dropped)
	least := p.columns()
	for i := len(dropped) - 1; i >= 0 && len(dropped) <= mostTried; i-- {
		kept := slices.Delete(slices.Clone(dropped), i, i+1)
		if p.layOut(kept); p.columns() <= least {
			dropped, least = kept, p.columns()
		}
	}
	p.layOut(dropped)
}

// knowledge has the facts that decide whether a value can be recomputed.
type knowledge struct {
	writers map[ref]int  // stages and gathers of the forward pass that write it
	wanted  map[ref]bool // the backward pass reads it
}

func (p *plan) know() knowledge {
	k := knowledge{map[ref]int{}, map[ref]bool{}}
	for _, e := range p.events {
		for _, r := range e.writes {
			if !e.Stage.Backward() {
				k.writers[r]++
			}
		}
		for _, r := range slices.Concat(e.reads, e.shared) {
			k.wanted[r] = k.wanted[r] || e.Stage.Backward()
		}
	}
	return k
}

// depth returns the number of consecutive stages that recompute the results of e. It is 0 if
// that is impossible, because e overwrites its input or another event overwrites its result,
// or if the backward pass does not read the result.
func (k knowledge) depth(e event, depth map[ref]int) int {
	if e.Stage != Draw && e.Stage != Emit && e.Stage != Apply || overlap(e.reads, e.writes) {
		return 0
	}
	wanted, most := false, 0
	for _, r := range e.writes {
		wanted = wanted || k.wanted[r]
		if k.writers[r] > 1 {
			return 0
		}
	}
	if !wanted {
		return 0
	}
	for _, r := range e.reads {
		most = max(most, depth[r])
	}
	return most + 1
}
