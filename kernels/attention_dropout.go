package kernels

import "siafu/kernels/internal/avx"

// keepFactors returns the dropout factors of edges.
func (b *edgeBatch) keepFactors(k *attentionTask, s *segment) avx.PerEdge {
	if k.drop {
		return avx.PerEdge{Vals: b.keep[s.value:], Step: avx.Heads}
	}
	return avx.PerEdge{Vals: b.ones[:]}
}

// draw sets keep to the dropout factors of edges.
func (b *edgeBatch) draw(k *attentionTask, s *segment) {
	if !k.drop || s.n == 0 {
		return
	}
	m := &k.masks[0]
	for i := range b.nearIDs {
		b.nearIDs[i] = m.id(k.first + s.row)
	}
	m.idsOf(k.set, b.farIDs[:s.n], b.ids[s.id:][:s.n], k.Base)
	sources, targets := b.farIDs[:], b.nearIDs[:]
	if k.op == backToSources {
		sources, targets = targets, sources
	}
	for i := range (k.size + philoxWords - 1) / philoxWords {
		m, keep := &k.masks[i], b.keep[s.value+i*philoxWords:]
		if k.set != avx.None {
			k.set.EdgeMask(&m.draw, keep, k.step, sources, targets, s.n)
			continue
		}
		m.edges(keep, k.step, min(k.size-i*philoxWords, philoxWords), sources, targets, s.n)
	}
}

// idsOf sets dst to the dataset ids of rows, counted from base.
func (m *mask) idsOf(set avx.Set, dst, rows []uint32, base uint32) {
	switch {
	case m.ids == nil:
		for i, r := range rows {
			dst[i] = r + base
		}
	case set != avx.None:
		set.Lookup(dst, rows, m.ids[base:])
	default:
		for i, r := range rows {
			dst[i] = m.ids[r+base]
		}
	}
}

// edges computes avx.Set.EdgeMask of some heads in plain Go.
func (m *mask) edges(keep []float32, step, heads int, sources, targets []uint32, n int) {
	for e := range n {
		u, v := sources[e%len(sources)], targets[e%len(targets)]
		words := Philox([4]uint32{u, v, m.epoch, m.layer}, m.key)
		for h := range heads {
			keep[e*step+h] = keepOrZero(m.scale, words[h] <= m.draw.Last)
		}
	}
}
