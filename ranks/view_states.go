package ranks

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"slices"

	"siafu/internal/mapped"
	"siafu/internal/safetensors"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
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
	Own    engine.PartState
	Folder string        // of the run
	State  *encodedState // of the run, of part 0
}

// encodedState is a checkpoint.State. Its JSON is that of a checkpoint, without the arrays.
type encodedState struct {
	JSON          []byte
	Weights, Best []encodedTensor
	Slots         []encodedSlot
	History       []byte
	Parts         [][]byte
}

// encodedTensor is a safetensors.Tensor with its numbers as bytes, which package gob copies at once.
type encodedTensor struct {
	Name  string
	Shape []int
	Data  []byte
}

type encodedSlot struct {
	Name    string
	Tensors []encodedTensor
}

func encodeTensors(list []safetensors.Tensor) (encoded []encodedTensor) {
	for _, t := range list {
		encoded = append(encoded, encodedTensor{t.Name, t.Shape, mapped.Bytes(t.Data)})
	}
	return encoded
}

func decodeTensors(encoded []encodedTensor) (list []safetensors.Tensor) {
	for _, e := range encoded {
		data := make([]float32, len(e.Data)/4)
		copy(mapped.Bytes(data), e.Data)
		list = append(list, safetensors.Tensor{Name: e.Name, Shape: e.Shape, Data: data})
	}
	return list
}

func encodeState(s *checkpoint.State) *encodedState {
	text, err := json.Marshal(s)
	if err != nil {
		panic("ranks: cannot encode the state of a run: " + err.Error())
	}
	e := &encodedState{JSON: text, Weights: encodeTensors(s.Weights), History: s.History, Parts: s.Parts}
	for _, slot := range s.Slots {
		e.Slots = append(e.Slots, encodedSlot{slot.Name, encodeTensors(slot.Tensors)})
	}
	if s.Best != nil {
		e.Best = encodeTensors(s.Best.Weights)
	}
	return e
}

func (e *encodedState) decode() (*checkpoint.State, error) {
	s := new(checkpoint.State)
	if err := json.Unmarshal(e.JSON, s); err != nil {
		return nil, err
	}
	s.Weights, s.History, s.Parts = decodeTensors(e.Weights), e.History, e.Parts
	for _, slot := range e.Slots {
		s.Slots = append(s.Slots, checkpoint.Slot{Name: slot.Name, Tensors: decodeTensors(slot.Tensors)})
	}
	if s.Best != nil {
		s.Best.Weights = decodeTensors(e.Best)
	}
	return s, nil
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
	m := new(partMemory)
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(m); err != nil {
		panic("ranks: cannot decode a part's state: " + err.Error())
	}
	return m
}
