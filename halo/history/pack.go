package history

import (
	"encoding/binary"
	"slices"

	"siafu/internal/fault"
)

// The packed state of a rank, all numbers little-endian:
//
//	4 bytes    magic
//	uint32     format
//	uint32     layers that gather
//	uint32 ×2  layer and width, of each
//	uint32     rows
//	rows       dataset id, and of each layer the epoch and the row as it is stored
const magic = "hst1"

// head returns the header of a rank's packed state.
func (s *Store) head() []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), uint32(s.o.Format))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.o.Shapes)))
	for _, l := range s.o.Shapes {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(l.Layer)), uint32(l.Width))
	}
	return b
}

// record returns the bytes of a vertex.
func (s *Store) record() int {
	bytes := 4
	for _, l := range s.o.Shapes {
		bytes += epochBytes + s.layers[l.Layer].stride
	}
	return bytes
}

// Pack returns the rows of this rank, by dataset id, for a checkpoint. The results of several
// ranks may be concatenated.
func (s *Store) Pack() []byte {
	head, own := s.head(), s.o.Plan.OwnIDs
	b := slices.Grow(head, 4+len(own)*s.record())
	b = binary.LittleEndian.AppendUint32(b, uint32(len(own)))
	for row, id := range own {
		b = binary.LittleEndian.AppendUint32(b, id)
		for _, l := range s.o.Shapes {
			at := s.layers[l.Layer]
			b = append(binary.LittleEndian.AppendUint32(b, at.epochs[row]), at.at(row)...)
		}
	}
	return b
}

// Unpack restores the rows of own vertices from the packed state of all ranks, for any
// assignment of vertices to ranks. It fails if the state is damaged, is of another format
// or network, or lacks a vertex.
func (s *Store) Unpack(b []byte) error {
	rows, head, record := map[uint32]int{}, s.head(), s.record()
	for row, id := range s.o.Plan.OwnIDs {
		rows[id] = row
	}
	for len(b) > 0 {
		if len(b) < len(head)+4 || string(b[:len(head)]) != string(head) {
			return s.mismatch("its header does not match this network and format")
		}
		n := int(binary.LittleEndian.Uint32(b[len(head):]))
		if b = b[len(head)+4:]; n > len(b)/record {
			return s.mismatch("it is truncated: it ends within its %d rows", n)
		}
		for ; n > 0; n, b = n-1, b[record:] {
			id := binary.LittleEndian.Uint32(b)
			if row, mine := rows[id]; mine {
				s.restoreRow(row, b[4:record])
				delete(rows, id)
			}
		}
	}
	if len(rows) > 0 {
		return s.mismatch("it lacks %d of the %d vertices of rank %d", len(rows), len(s.o.Plan.OwnIDs), s.o.Comm.Rank())
	}
	return nil
}

// restoreRow restores the stored rows of an own vertex.
func (s *Store) restoreRow(row int, b []byte) {
	for _, l := range s.o.Shapes {
		at := s.layers[l.Layer]
		at.epochs[row] = binary.LittleEndian.Uint32(b)
		copy(at.at(row), b[epochBytes:])
		b = b[epochBytes+at.stride:]
	}
}

func (s *Store) mismatch(format string, args ...any) error {
	return fault.New(fault.Data, "resume", "the history of representations", format, args...).Then("resume from an older checkpoint")
}
