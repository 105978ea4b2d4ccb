package model

import (
	"slices"
)

// makers are the events of dropped stages, by what they make.
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

// repeat is the order of events with dropped stages, which are run again before
// what first needs them in the backward pass.
func (p *plan) repeat(makers map[ref]int) []event {
	if len(makers) == 0 {
		return p.events
	}
	var all []event
	done := map[int]bool{}
	for i, e := range p.events {
		if e.Stage.Backward() && e.Stage < Stages {
			// What a gather reads is made again by the tensor stage before it.
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

// remade are the dropped stages, as they are run again, that make values which have
// not been made again, each after those that it needs itself.
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

// mostAgain is how many stages may have to run again, one after another, for one
// value. Of so many stages as mostTried each is kept again if that costs nothing; of
// more, only the time to find out would be felt.
const (
	mostAgain = 2
	mostTried = 64
)

// recompute drops what can be made again, and keeps it after all where that takes
// no more memory.
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

// knowledge is what decides whether a value can be made again.
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

// depth is how many stages run one after another to make again what e has made, 0
// where that cannot be: it has overwritten what it was made from, or somebody else
// overwrites the result; or where nobody wants it back.
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
