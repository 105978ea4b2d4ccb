package halo

import (
	"siafu/internal/mapped"
)

// Part is a subset of a plan's rows that is sent at once. Rows keep their order in the
// plan, so that parts of all ranks match if they select the same ids.
type Part struct {
	plan *Plan
	// Rank q receives SendRows[Sent[SendStart[q]:SendStart[q+1]]] of the plan, and sends the
	// ghosts Received[RecvStart[q]:RecvStart[q+1]].
	SendStart, RecvStart []int64
	Sent, Received       []uint32

	rows                 []uint32 // own rows and sums of Sent
	sentIDs, receivedIDs []uint32
	sums                 []bool // of Sent, which are sums; nil: none is
}

// NewParts divides the rows of a plan into parts by their ids. Memory comes from a.
func NewParts(p *Plan, parts int, of func(id uint32) int, a *mapped.Arena) []*Part {
	whole := NewPart(p, a)
	list := make([]*Part, parts)
	for g := range list {
		list[g] = &Part{plan: p, SendStart: make([]int64, p.Parts+1), RecvStart: make([]int64, p.Parts+1)}
	}
	a.Fill(func() {
		rest := *whole
		for g, part := range list {
			part.Sent, part.Received, part.rows = rest.Sent[:0], rest.Received[:0], rest.rows[:0]
			part.sentIDs, part.receivedIDs, part.sums = rest.sentIDs[:0], rest.receivedIDs[:0], rest.sums[:0]
			part.Select(func(id uint32) bool { return of(id) == g })
			rest.skipPrefix(part)
		}
	})
	return list
}

// NewPart makes an empty part with memory for all rows of a plan.
func NewPart(p *Plan, a *mapped.Arena) *Part {
	sent, received := len(p.SendRows), p.Ghosts
	ids := func(n int) []uint32 { return mapped.Make[uint32](a, n) }
	part := &Part{
		plan: p, SendStart: make([]int64, p.Parts+1), RecvStart: make([]int64, p.Parts+1),
		Sent: ids(sent), Received: ids(received), rows: ids(sent), sentIDs: ids(sent), receivedIDs: ids(received),
	}
	if p.Sums > 0 {
		part.sums = make([]bool, sent)
	}
	return part
}

// skipPrefix sets p to the memory that part o has not used.
func (p *Part) skipPrefix(o *Part) {
	sent, received := len(o.Sent), len(o.Received)
	p.Sent, p.rows, p.sentIDs = p.Sent[sent:], p.rows[sent:], p.sentIDs[sent:]
	p.Received, p.receivedIDs = p.Received[received:], p.receivedIDs[received:]
	if p.sums != nil {
		p.sums = p.sums[sent:]
	}
}

// Select sets the part to the rows whose ids are wanted. All ranks must select the same
// ids.
func (p *Part) Select(wanted func(id uint32) bool) {
	plan := p.plan
	p.Sent, p.rows, p.sentIDs, p.sums = p.Sent[:0], p.rows[:0], p.sentIDs[:0], p.sums[:0]
	p.Received, p.receivedIDs = p.Received[:0], p.receivedIDs[:0]
	for q := range plan.Parts {
		for i := plan.SendStart[q]; i < plan.SendStart[q+1]; i++ {
			row := plan.SendRows[i]
			if id := plan.OwnIDs[row]; wanted(id) {
				p.Sent, p.rows, p.sentIDs = append(p.Sent, uint32(i)), append(p.rows, row), append(p.sentIDs, id)
				if plan.Sums > 0 {
					p.sums = append(p.sums, int(row) >= plan.Own)
				}
			}
		}
		for i := plan.RecvStart[q]; i < plan.RecvStart[q+1]; i++ {
			if id := plan.GhostIDs[i]; wanted(id) {
				p.Received, p.receivedIDs = append(p.Received, uint32(i)), append(p.receivedIDs, id)
			}
		}
		p.SendStart[q+1], p.RecvStart[q+1] = int64(len(p.Sent)), int64(len(p.Received))
	}
}
