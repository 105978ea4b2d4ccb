package importers

import (
	"bytes"
	"hash/maphash"
	"strconv"

	"siafu/graph"
)

// idIndex numbers texts in the order of insertion: text v is text[offsets[v]:offsets[v+1]]. It
// uses their bytes, and 12 to 16 more for each.
type idIndex struct {
	seed    maphash.Seed
	offsets []int64
	text    []byte
	slots   []uint32 // open addressing: 1 + the number of a text, 0 is free
}

func newIDIndex() *idIndex {
	return &idIndex{seed: maphash.MakeSeed(), offsets: []int64{0}, slots: make([]uint32, 1<<4)}
}

func (x *idIndex) len() int { return len(x.offsets) - 1 }

func (x *idIndex) at(v uint32) []byte { return x.text[x.offsets[v]:x.offsets[v+1]] }

// slot returns the slot of id, or a free slot for it.
func (x *idIndex) slot(id []byte) uint64 {
	mask := uint64(len(x.slots) - 1)
	i := maphash.Bytes(x.seed, id) & mask
	for x.slots[i] != 0 && !bytes.Equal(x.at(x.slots[i]-1), id) {
		i = (i + 1) & mask
	}
	return i
}

// find returns the number of id.
func (x *idIndex) find(id []byte) (v uint32, known bool) {
	s := x.slots[x.slot(id)]
	return s - 1, s != 0
}

// add assigns the next number to id, or returns its existing one.
func (x *idIndex) add(id []byte) (v uint32, fresh bool) {
	i := x.slot(id)
	if s := x.slots[i]; s != 0 {
		return s - 1, false
	}
	v = uint32(x.len())
	x.slots[i] = v + 1
	x.text = append(x.text, id...)
	x.offsets = append(x.offsets, int64(len(x.text)))
	if 4*x.len() > 3*len(x.slots) {
		x.slots = make([]uint32, 2*len(x.slots))
		for v := range x.len() {
			x.slots[x.slot(x.at(uint32(v)))] = uint32(v) + 1
		}
	}
	return v, true
}

// ids returns the ids for a dataset: as numbers if all are whole numbers whose text can be
// restored.
func (x *idIndex) ids() *graph.IDs {
	ints, buffer := make([]int64, 0, x.len()), make([]byte, 0, 20)
	for v := range x.len() {
		id := x.at(uint32(v))
		n, ok := parseInt(id)
		if buffer = strconv.AppendInt(buffer[:0], n, 10); !ok || !bytes.Equal(buffer, id) {
			return &graph.IDs{Offsets: x.offsets, Text: x.text}
		}
		ints = append(ints, n)
	}
	return keepIDs(ints)
}
