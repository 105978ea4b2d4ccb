package ranks

import (
	"slices"

	"siafu/internal/wire"
	"siafu/ranks/world/membership"
)

// storedState is the encoded partMemory of an epoch.
type storedState struct {
	epoch int
	data  []byte
}

// storedStates is the number of states that are stored of each part. No part ends an epoch before all
// parts have begun it, so two parts of a view differ by at most one epoch, and a copy is at most one
// epoch older than its part.
const storedStates = 3

// partMemory is the state of a part after an epoch.
type partMemory struct {
	Own    []byte
	Folder string // of the run
	State  []byte // of the run (checkpoint.State.Encode), of part 0
}

func (m partMemory) encode() []byte {
	w := wire.Writer{B: make([]byte, 0, len(m.Own)+len(m.Folder)+len(m.State)+3*8)}
	for _, b := range [][]byte{m.Own, []byte(m.Folder), m.State} {
		w.Bytes(b)
	}
	return w.B
}

// States implements parts.ElasticJob.
func (c *viewSequence) States() (list []membership.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for part, stored := range c.states {
		for _, s := range stored {
			list = append(list, membership.State{Part: part, Epoch: s.epoch})
		}
	}
	return list
}

// Pack implements parts.ElasticJob.
func (c *viewSequence) Pack(at membership.State) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.states[at.Part] {
		if s.epoch == at.Epoch {
			return s.data
		}
	}
	return nil
}

// Unpack implements parts.ElasticJob.
func (c *viewSequence) Unpack(at membership.State, packed []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.DeleteFunc(c.states[at.Part], func(s storedState) bool { return s.epoch >= at.Epoch })
	list = append(list, storedState{at.Epoch, packed})
	c.states[at.Part] = list[max(len(list)-storedStates, 0):]
}

// newest returns the epoch of the newest state of a part, -1 if it has none.
func (c *viewSequence) newest(part int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.states[part]; len(list) > 0 {
		return list[len(list)-1].epoch
	}
	return -1
}

// memory returns the state of a part after an epoch, nil if it is not stored.
func (c *viewSequence) memory(part, epoch int) *partMemory {
	data := c.Pack(membership.State{Part: part, Epoch: epoch})
	if data == nil {
		return nil
	}
	list, err := wire.Arrays(data)
	if err != nil || len(list) != 3 {
		panic("ranks: cannot decode a part's state")
	}
	return &partMemory{list[0], string(list[1]), list[2]}
}
