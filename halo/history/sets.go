package history

import (
	"siafu/halo/comm"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Set has the vertices whose rows are pulled together: rows of own vertices, then ghosts by
// the plan's numbers, which start at 0. Both lists are ascending.
type Set struct{ Own, Ghosts []uint32 }

// Len returns the number of rows.
func (s Set) Len() int { return len(s.Own) + len(s.Ghosts) }

// AllGhosts returns the set of the first n ghosts.
func AllGhosts(n int) Set {
	all := Set{Ghosts: make([]uint32, n)}
	for g := range all.Ghosts {
		all.Ghosts[g] = uint32(g)
	}
	return all
}

// sets has the sets of this rank, and the send lists for other ranks' sets.
type sets struct {
	own  []Set
	from [][]int32    // by set and rank: the number of ghosts that the rank owns
	sent [][]sentRows // by rank and set
}

// sentRows lists own rows in another rank's set, in the order of its ghosts.
type sentRows []uint32

// ExchangeSets sends the sets of this rank to the owners of their ghosts. All ranks have the same
// number of sets. Memory comes from a; buffers fit the largest set. Collective.
func (s *Store) ExchangeSets(own []Set, a *mapped.Arena) error {
	p, a := s.o.Plan, a.For(Lists)
	messages := make([][]uint32, p.Parts)
	s.sets = sets{own: own, sent: make([][]sentRows, p.Parts)}
	for _, set := range own {
		counts, at := make([]int32, p.Parts), 0
		for q := range messages {
			first := at
			for at < len(set.Ghosts) && int64(set.Ghosts[at]) < p.RecvStart[q+1] {
				at++
			}
			counts[q] = int32(at - first)
			messages[q] = append(messages[q], uint32(at-first))
			for _, g := range set.Ghosts[first:at] {
				messages[q] = append(messages[q], g-uint32(p.RecvStart[q]))
			}
		}
		s.sets.from = append(s.sets.from, counts)
	}
	answers, err := comm.Swap(s.o.Comm, messages, func(q int) uint64 {
		return uint64(len(own)) * uint64(1+p.SendStart[q+1]-p.SendStart[q])
	})
	if err != nil {
		return err
	}
	for q, answer := range answers {
		if s.sets.sent[q], err = s.takeSets(q, answer, a); err != nil {
			return err
		}
	}
	s.pull = newPull(s, a)
	return nil
}

// takeSets reads the send lists for the sets of rank q.
func (s *Store) takeSets(q int, message []uint32, a *mapped.Arena) ([]sentRows, error) {
	p := s.o.Plan
	rows := p.SendRows[p.SendStart[q]:p.SendStart[q+1]]
	list := make([]sentRows, len(s.sets.own))
	for k := range list {
		if len(message) == 0 || int(message[0]) > len(message)-1 {
			return nil, s.damaged(q)
		}
		n := int(message[0])
		list[k] = mapped.Make[uint32](a, n)
		for i, g := range message[1 : 1+n] {
			if int(g) >= len(rows) {
				return nil, s.damaged(q)
			}
			list[k][i] = rows[g]
		}
		message = message[1+n:]
	}
	if len(message) > 0 {
		return nil, s.damaged(q)
	}
	return list, nil
}

func (s *Store) damaged(q int) error {
	return fault.New(fault.Runtime, "history", "", "rank %d: corrupt message from rank %d about its %d sets of vertices",
		s.o.Comm.Rank(), q, len(s.sets.own))
}
