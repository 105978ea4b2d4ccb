package history

import (
	"encoding/binary"
	"time"

	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// pull is a pull in transit. A row is sent in its storage format, followed by its epoch.
type pull struct {
	out, in             []byte
	outCounts, inCounts []int
	layer               *series
	set                 int
	request             comm.Request // nil: none is in transit

	// For the workers: the list of the rank whose rows are being packed, and the destination.
	sent   sentRows
	packed []byte
	dst    []float32
	epochs []uint32
	pack   func(lo, hi int)
	take   func(lo, hi int)
}

const epochBytes = 4

// rowGrain is how many rows a worker copies at a time.
const rowGrain = 256

// newPull allocates memory for the largest pull of any set, together with any pull of other
// ranks.
func newPull(s *Store, a *mapped.Arena) pull {
	p := pull{outCounts: make([]int, s.o.Plan.Parts), inCounts: make([]int, s.o.Plan.Parts), pack: s.packRows, take: s.takeRows}
	record, out, in := 0, 0, 0
	for _, l := range s.layers {
		if l != nil {
			record = max(record, l.stride+epochBytes)
		}
	}
	for _, list := range s.sets.sent {
		most := 0
		for _, rows := range list {
			most = max(most, len(rows))
		}
		out += most
	}
	for _, set := range s.sets.own {
		in = max(in, len(set.Ghosts))
	}
	p.out, p.in = mapped.Make[byte](a, out*record), mapped.Make[byte](a, in*record+kernels.CodeSlack)
	return p
}

// BeginPull starts to fetch a layer's rows of the set sets[rank], with their current values on
// all ranks. Rank q pulls its set sets[q]. Collective.
func (s *Store) BeginPull(layer int, sets []int) error {
	began, p, l := time.Now(), &s.pull, s.layers[layer]
	record, at := l.stride+epochBytes, 0
	p.layer, p.set = l, sets[s.o.Comm.Rank()]
	for q := range sets {
		p.sent, p.packed = s.sets.sent[q][sets[q]], p.out[at:]
		s.o.Team.Run(len(p.sent), rowGrain, p.pack)
		p.outCounts[q], p.inCounts[q] = len(p.sent)*record, int(s.sets.from[p.set][q])*record
		at += p.outCounts[q]
		if len(p.sent) > 0 {
			s.stats.RawBytes += int64(4 * len(p.sent) * l.width)
			s.stats.SentBytes += int64(p.outCounts[q])
			s.stats.Messages++
		}
	}
	var err error
	p.request, err = s.o.Comm.Ialltoallv(p.out[:at], p.outCounts, p.in[:len(s.sets.own[p.set].Ghosts)*record], p.inCounts)
	s.stats.Encode += time.Since(began)
	return err
}

// packRows packs rows lo..hi-1 of a send list.
func (s *Store) packRows(lo, hi int) {
	p, l := &s.pull, s.pull.layer
	record := l.stride + epochBytes
	for i := lo; i < hi; i++ {
		to, row := p.packed[i*record:(i+1)*record], int(p.sent[i])
		copy(to, l.at(row))
		binary.LittleEndian.PutUint32(to[l.stride:], l.epochs[row])
	}
}

// Pulled reports, without waiting, whether the rows have arrived.
func (s *Store) Pulled() (bool, error) {
	if s.pull.request == nil {
		return true, nil
	}
	return s.pull.request.Test()
}

// Await returns when the rows have arrived.
func (s *Store) Await() error {
	if s.pull.request == nil {
		return nil
	}
	began := time.Now()
	defer func() { s.stats.Wait += time.Since(began) }()
	return s.pull.request.Wait()
}

// EndPull sets dst [Len x width] to the rows of the set, and epochs [Len] to their epochs,
// 0 for a vertex without a row.
func (s *Store) EndPull(dst []float32, epochs []uint32) error {
	if err := s.Await(); err != nil {
		return err
	}
	began, p := time.Now(), &s.pull
	p.request, p.dst, p.epochs = nil, dst, epochs
	s.o.Team.Run(s.sets.own[p.set].Len(), rowGrain, p.take)
	s.stats.Decode += time.Since(began)
	return nil
}

// takeRows reads rows lo..hi-1 of the set, own and received ones.
func (s *Store) takeRows(lo, hi int) {
	p, l := &s.pull, s.pull.layer
	set, record := s.sets.own[p.set], l.stride+epochBytes
	for i := lo; i < hi; i++ {
		dst := p.dst[i*l.width : (i+1)*l.width]
		if i < len(set.Own) {
			row := int(set.Own[i])
			s.o.Format.get(dst, l.rows[row*l.stride:])
			p.epochs[i] = l.epochs[row]
			continue
		}
		from := p.in[(i-len(set.Own))*record:]
		s.o.Format.get(dst, from)
		p.epochs[i] = binary.LittleEndian.Uint32(from[l.stride:])
	}
}
