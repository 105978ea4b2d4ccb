package engine

import (
	"slices"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels/objective"
	"siafu/ranks/world"
)

// scores computes the scores of n pairs of this rank and passes them to sink in chunks of whole
// groups of pairs, as large as the buffers allow. A pair is an own row and any vertex. Collective
// over the graph ranks.
func (p *pairing) scores(n, group int, at func(i int) (row, v uint32, relation uint16), sink func(first int, scores []float32)) error {
	most := max(PairsPerChunk/group, 1) * group
	chunks, err := p.maxOverRanks((n + most - 1) / most)
	if err != nil {
		return err
	}
	var rows, others []uint32
	var relations []uint16
	var scores []float32
	for k := range chunks {
		lo, hi := min(n, k*most), min(n, (k+1)*most)
		resize(&rows, hi-lo)
		resize(&others, hi-lo)
		resize(&relations, hi-lo)
		resize(&scores, hi-lo)
		p.team.Run(hi-lo, pieceOfPairs, func(first, last int) {
			for i := first; i < last; i++ {
				rows[i], others[i], relations[i] = at(lo + i)
			}
		})
		if _, err := p.fetchRows(others); err != nil {
			return err
		}
		p.team.Run(hi-lo, pieceOfPairs, func(first, last int) {
			p.scorer.scores(p, scores[:last], rows[:last], others, relations, first)
		})
		sink(lo, scores)
	}
	return nil
}

// ownPairs returns the positions of the pairs whose first vertex this rank owns, and the rows of
// these vertices.
func (p *pairing) ownPairs(list graph.Pairs) (positions []int, rows []uint32) {
	for i, v := range list.Src {
		if row, ok := p.directory.Row(v); ok {
			positions, rows = append(positions, i), append(rows, row)
		}
	}
	return positions, rows
}

// scoresOf returns the scores of the pairs of a list whose first vertex this rank owns, and the
// positions of these pairs in the list. relations is nil unless the graph is relational. Collective over the
// graph ranks.
func (p *pairing) scoresOf(list graph.Pairs, relations []uint16) (positions []int, scores []float32, err error) {
	positions, rows := p.ownPairs(list)
	scores = make([]float32, len(positions))
	if relations == nil {
		relations = make([]uint16, list.Len())
	}
	err = p.scores(len(positions), 1, func(i int) (uint32, uint32, uint16) {
		return rows[i], list.Dst[positions[i]], relations[positions[i]]
	}, func(first int, some []float32) { copy(scores[first:], some) })
	return positions, scores, err
}

// heldSplit returns the held-out edges of a split.
func (p *pairing) heldSplit(split int) *graph.Held {
	if split == graph.SplitVal {
		return &p.held.Val
	}
	return &p.held.Test
}

// evaluate computes the areas under curves, and the loss of the validation pairs. Collective
// over the graph ranks.
func (p *pairing) evaluate() error {
	for split := graph.SplitVal; split <= graph.SplitTest; split++ {
		m, loss, err := p.heldOutMetrics(p.heldSplit(split))
		if err != nil {
			return err
		}
		if split == graph.SplitVal {
			p.found.valLoss = loss
		}
		if m.ROCAUC != nil {
			p.found.auc[split], p.found.counted = *m.ROCAUC, 1
		}
	}
	p.buffers.histograms.mergeInto(p.trainHistogram)
	if err := world.SumInt64s(p.comm, p.trainHistogram[:]); err != nil {
		return err
	}
	if p.comm.Rank() == 0 {
		p.found.auc[graph.SplitTrain] = p.trainHistogram.AUC()
	}
	return nil
}

// heldOutMetrics returns the metrics of held-out edges, except MRR, on rank 0, and this rank's
// part of the loss. Collective over the graph ranks.
func (p *pairing) heldOutMetrics(h *graph.Held) (m objective.Metrics, loss float64, err error) {
	var lists [2][]float32
	for k, list := range []graph.Pairs{h.Edges, h.Not} {
		_, scores, err := p.scoresOf(list, h.Relations)
		if err != nil {
			return m, 0, err
		}
		if len(scores) > 0 {
			loss += objective.PairLosses(slices.Clone(scores), k == 0, 1) / float64(list.Len())
		}
		blocks, err := world.Gather(p.comm, 0, mapped.Bytes(scores))
		if err != nil {
			return m, 0, err
		}
		for _, b := range blocks {
			lists[k] = append(lists[k], mapped.Cast[float32](b)...)
		}
	}
	if p.comm.Rank() == 0 {
		m = objective.Links(lists[0], lists[1])
	}
	return m, loss, nil
}

// mrr returns the mean reciprocal rank of held-out edges among their candidate vertices.
// Collective over the graph ranks.
func (p *pairing) mrr(h *graph.Held) (float64, error) {
	each := p.held.Ranked
	at, edges, err := p.scoresOf(h.Edges, nil)
	if err != nil {
		return 0, err
	}
	_, rows := p.ownPairs(h.Edges)
	sum, shares := []float64{0}, []float64(nil)
	err = p.scores(len(at)*each, each, func(i int) (uint32, uint32, uint16) { return rows[i/each], h.Each[at[i/each]*each+i%each], 0 },
		func(first int, others []float32) {
			resize(&shares, len(others)/each)
			p.team.Run(len(shares), 16, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					edge := first/each + i
					n := graph.Candidates(h.Each[at[edge]*each:(at[edge]+1)*each], h.Edges.Dst[at[edge]])
					shares[i] = objective.Reciprocal(edges[edge], others[i*each:i*each+n])
				}
			})
			for _, share := range shares {
				sum[0] += share
			}
		})
	if err != nil {
		return 0, err
	}
	err = world.SumFloat64s(p.comm, sum)
	return sum[0] / float64(h.Edges.Len()), err
}

// computeMetrics implements trainer.computeMetrics for the task Links.
func (p *pairing) computeMetrics(metric string, wanted []uint8) ([]objective.Metrics, error) {
	all := make([]objective.Metrics, graph.SplitTest+1)
	for split := graph.SplitVal; split <= graph.SplitTest; split++ {
		if !slices.Contains(wanted, uint8(split)) {
			continue
		}
		h := p.heldSplit(split)
		m, _, err := p.heldOutMetrics(h)
		if err != nil {
			return nil, err
		}
		if p.held.Ranked > 0 && (metric == allMetrics || metric == "mrr") {
			mean, err := p.mrr(h)
			if err != nil {
				return nil, err
			}
			m.MRR = &mean
		}
		if p.triples != nil {
			m.Hits10, m.Hits20, m.Hits50, m.Hits100 = nil, nil, nil, nil // of negatives
			if metric == allMetrics || metric == "mrr" || objective.HitsNeed(metric) > 0 {
				ranks, err := p.tripleRanks(h)
				if err != nil {
					return nil, err
				}
				ranks.Set(&m)
			}
		}
		all[split] = m
	}
	return all, nil
}

// addFindings adds the link results of the last pass.
func (p *pairing) addFindings(f *findings) {
	f[trainLoss] += p.found.loss
	f[valLoss] += p.found.valLoss
	f[seenVal] += p.found.counted
	for k, split := range splits {
		f[hits+k] += p.found.auc[split]
		f[totals+k] += p.found.counted
	}
}

// Pairs returns the scores of pairs, on rank 0. relations are their relations, nil unless the graph is relational.
// All ranks must pass the same lists. Call it before Classes. Collective over the graph ranks.
func (i *Inference) Pairs(list graph.Pairs, relations []uint16) ([]float32, error) {
	t := i.t
	p, err := t.engine.newPairing(t.net.Dims[t.net.Layers()])
	if err != nil {
		return nil, err
	}
	p.loadPass(t)
	at, scores, err := p.scoresOf(list, relations)
	if err != nil {
		return nil, err
	}
	type scored struct {
		At     []int
		Scores []float32
	}
	blocks, err := world.GatherValues(p.comm, 0, scored{at, scores})
	if err != nil || p.comm.Rank() != 0 {
		return nil, err
	}
	all := make([]float32, list.Len())
	for _, b := range blocks {
		for k, place := range b.At {
			all[place] = b.Scores[k]
		}
	}
	return all, nil
}
