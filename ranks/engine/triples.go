package engine

import (
	"slices"
	"sync"

	"siafu/graph"
	"siafu/halo/comm"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/ranks/world"
)

// tripleScorer scores the edges of a relational graph, its triples. The loss of a triple and of its corrupted triples
// (kernels.SampleCorrupted) belongs to the rank of its destination. That rank fetches the rows of both ends and
// returns their gradients.
type tripleScorer struct {
	score     model.TripleScore
	of        *graph.Relations
	weights   []float32 // rows of relations [relations x width]
	grad      []float32
	width     int
	negatives int            // corrupted triples of each triple
	list      []graph.Triple // training triples of this rank, with the ids of the dataset
	relations []uint16       // of the current pairs
	spans     [][2]int64     // first vertex and number of vertices of each kind
	answers   map[question][]uint32
}

// newTripleScorer returns the scorer for the edges of a relational graph.
func (e *Engine) newTripleScorer(width int) *tripleScorer {
	at := e.Network.HeadRange()
	t := &tripleScorer{score: e.Network.Design.Score, of: e.Meta.Relations, grad: make([]float32, at.Hi-at.Lo), width: width,
		negatives: max(e.Config.LinkNegatives, 1)}
	for k := range t.of.Kinds {
		first, n := t.of.Span(k)
		t.spans = append(t.spans, [2]int64{int64(first), n})
	}
	return t
}

// prepareTriples lists the training triples.
func (p *pairing) prepareTriples() {
	sh, t := p.shard, p.triples
	ids := func(local uint32) uint32 {
		if n := uint32(sh.NumOwn()); local >= n {
			return sh.Ghosts[local-n]
		}
		return sh.Own[local]
	}
	for v := range sh.NumOwn() {
		for i := sh.In.Offsets[v]; i < sh.In.Offsets[v+1]; i++ {
			if r := sh.Relations[i]; !t.of.Relations[r].Reverse {
				t.list = append(t.list, graph.Triple{Src: ids(sh.In.Cols[i]), Dst: sh.Own[v], Relation: r})
			}
		}
	}
	for _, x := range p.held.Loops.Triples() {
		if _, own := p.directory.Row(x.Dst); own {
			t.list = append(t.list, x)
		}
	}
}

func (t *tripleScorer) begin(weights []float32, _ kernels.PairDropout) {
	t.weights = weights
	clear(t.grad)
}

func (t *tripleScorer) sumGrads() {}

func (t *tripleScorer) weightGrad() []float32 { return t.grad }

// row returns the weights of a relation, or their part of a gradient; nil without weights.
func (t *tripleScorer) row(of []float32, relation uint16) []float32 {
	if t.score == "" {
		return nil
	}
	return of[int(relation)*t.width : (int(relation)+1)*t.width]
}

// scores implements scorer. The first vertex of a pair is the source.
func (t *tripleScorer) scores(p *pairing, scores []float32, rows, others []uint32, relations []uint16, first int) {
	query := make([]float32, t.width)
	for i := first; i < len(scores); i++ {
		if i == first || rows[i] != rows[i-1] || relations[i] != relations[i-1] {
			t.score.Query(query, p.rowOf(rows[i]), t.row(t.weights, relations[i]), false)
		}
		p.team.DotsOf(scores[i:i+1], query, p.x, others[i:])
	}
}

// ChunkTriples returns the number of triples, with the given number of corrupted triples each, whose rows are
// fetched at a time.
func ChunkTriples(negatives int) int { return max(PairsPerChunk/2/(1+negatives), 1) }

// addTripleLoss adds the loss of the training triples and of their corrupted triples, each with half of the weight.
// Collective.
func (p *pairing) addTripleLoss(pass model.Pass) error {
	t, most := p.triples, ChunkTriples(p.triples.negatives)
	for c := range p.chunks {
		list := t.list[min(c*most, len(t.list)):min((c+1)*most, len(t.list))]
		n := len(list) * (1 + t.negatives)
		ends := resize(&p.buffers.others, 2*n)
		srcs, dsts, relations := ends[:n], ends[n:], resize(&t.relations, n)
		p.team.Run(len(list), pieceOfPairs, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				x := list[i]
				srcs[i], dsts[i], relations[i] = x.Src, x.Dst, x.Relation
				r := t.of.Relations[x.Relation]
				for k := range t.negatives {
					at := len(list) + i*t.negatives + k
					relations[at] = x.Relation
					srcs[at], dsts[at] = kernels.SampleCorrupted(p.seed, pass.Epoch, x.Src, x.Dst, x.Relation, uint16(k),
						t.spans[r.From], t.spans[r.To])
				}
			}
		})
		set, err := p.fetchRows(ends)
		if err != nil {
			return err
		}
		p.countMoved(set, 1, pass.Train, true)
		slopes := resize(&p.buffers.slopes, n)
		p.scoreTriples(slopes[:len(list)], srcs, dsts, relations, true, 1)
		p.scoreTriples(slopes[len(list):], srcs[len(list):], dsts[len(list):], relations[len(list):], false, 1/float64(t.negatives))
		if !pass.Train {
			continue
		}
		p.addTripleGrads(slopes, srcs, dsts, relations)
		if err := p.returnGrads(set, true); err != nil {
			return err
		}
	}
	return nil
}

// scoreTriples adds the loss of triples of local vertices, times weight, and sets slopes to its derivatives.
func (p *pairing) scoreTriples(slopes []float32, srcs, dsts []uint32, relations []uint16, are bool, weight float64) {
	const piece = 1024
	losses, scale := resize(&p.buffers.losses, (len(slopes)+piece-1)/piece), weight/float64(p.total)
	p.team.Run(len(losses), 1, func(k, _ int) {
		lo, hi := k*piece, min((k+1)*piece, len(slopes))
		p.triples.scores(p, slopes[:hi], srcs, dsts, relations, lo)
		if p.evaluates {
			counted := p.buffers.histograms.acquire()
			counted.Count(slopes[lo:hi], are)
			p.buffers.histograms.release(counted)
		}
		losses[k] = objective.PairLosses(slopes[lo:hi], are, scale)
	})
	for _, loss := range losses {
		p.found.loss += float64(scale * loss)
	}
}

// addTripleGrads adds the gradients of rows and of relations. A worker has some of the local vertices, or some
// columns, and reads all triples for them, so that sums have the order of the triples.
func (p *pairing) addTripleGrads(slopes []float32, srcs, dsts []uint32, relations []uint16) {
	t, n, shares := p.triples, len(p.x)/p.width, p.team.Workers()
	p.team.Run(shares, 1, func(k, _ int) {
		lo, hi := uint32(n*k/shares), uint32(n*(k+1)/shares)
		row, first := make([]float32, p.width), [1]uint32{}
		for i, slope := range slopes {
			w := t.row(t.weights, relations[i])
			for end, v := range [2]uint32{srcs[i], dsts[i]} {
				if lo <= v && v < hi {
					t.score.Query(row, p.rowOf([2]uint32{dsts[i], srcs[i]}[end]), w, end == 0)
					p.team.AddChosen(p.row(p.grad, p.grads, int(v)), row, first[:], []float32{slope})
				}
			}
		}
	})
	if t.score == "" {
		return
	}
	const slice = 16
	columns := t.score.Columns(p.width)
	p.team.Run((columns+slice-1)/slice, 1, func(k, _ int) {
		for i, slope := range slopes {
			t.score.AddGrad(t.row(t.grad, relations[i]), p.rowOf(srcs[i]), p.rowOf(dsts[i]), slope, k*slice, min((k+1)*slice, columns))
		}
	})
}

// question asks for the vertices that complete a triple with a known end.
type question struct {
	known    uint32
	relation uint16
	ofDst    bool // the known end is the destination
}

// questions returns the two questions of a triple, with their answers.
func questions(x graph.Triple) (of [2]question, answers [2]uint32) {
	return [2]question{{x.Src, x.Relation, false}, {x.Dst, x.Relation, true}}, [2]uint32{x.Dst, x.Src}
}

// findAnswers finds, for the questions of all held-out triples, the own rows that complete a triple of training,
// validation or test. Collective.
func (p *pairing) findAnswers() error {
	t := p.triples
	t.answers = map[question][]uint32{}
	held := append(p.held.Val.Triples(), p.held.Test.Triples()...)
	for _, x := range held {
		of, _ := questions(x)
		t.answers[of[0]], t.answers[of[1]] = nil, nil
	}
	add := func(q question, answer uint32) {
		if _, asked := t.answers[q]; !asked {
			return
		}
		if row, own := p.directory.Row(answer); own {
			t.answers[q] = append(t.answers[q], row)
		}
	}
	for _, x := range held {
		of, answers := questions(x)
		add(of[0], answers[0])
		add(of[1], answers[1])
	}
	// The destination's rank has a training triple; the source's rank also needs it.
	messages := make([][]uint32, p.comm.Size())
	for _, x := range t.list {
		of, answers := questions(x)
		add(of[0], answers[0])
		if _, asked := t.answers[of[1]]; asked {
			q := p.directory.Owner(x.Src)
			messages[q] = append(messages[q], x.Src, uint32(x.Relation), x.Dst)
		}
	}
	received, err := comm.Swap(p.comm, messages, func(int) uint64 { return 3 * uint64(p.total) })
	if err != nil {
		return err
	}
	for _, m := range received {
		for ; len(m) >= 3; m = m[3:] {
			add(question{m[2], uint16(m[1]), true}, m[0])
		}
	}
	for q, rows := range t.answers {
		slices.Sort(rows)
		t.answers[q] = slices.Compact(rows)
	}
	return nil
}

// questionFloats bounds the scores of the triples that are ranked at a time, over all ranks.
const questionFloats = 1 << 23

// rankedTriples returns the number of triples that are ranked at a time among the given number of vertices.
func rankedTriples(vertices int64) int { return int(max(1, questionFloats/2/vertices)) }

// QuestionBytes returns the bytes of the scores and rows of the triples that are ranked at a time on one rank.
func QuestionBytes(vertices, width int64) int64 {
	return 8 * int64(rankedTriples(vertices)) * (vertices + width)
}

// tripleRanks ranks both ends of held-out triples among all vertices of their kinds, except those that complete
// another known triple ("filtered", Bordes et al. 2013, section 4.2). Collective.
func (p *pairing) tripleRanks(h *graph.Held) (ranks objective.Ranks, err error) {
	t, own := p.triples, p.shard.NumOwn()
	if t.answers == nil {
		if err := p.findAnswers(); err != nil {
			return ranks, err
		}
	}
	kinds := make([]int, own)
	for row, v := range p.shard.Own {
		kinds[row] = t.of.KindOf(int64(v))
	}
	// The questions are the same on all ranks.
	scores := []float32(nil)
	for list := range slices.Chunk(h.Triples(), rankedTriples(p.shard.Vertices)) {
		n := 2 * len(list)
		asked, answers := make([]question, 0, n), make([]uint32, 0, n)
		queries := make([]float32, n*p.width)
		for _, x := range list {
			of, are := questions(x)
			asked, answers = append(asked, of[:]...), append(answers, are[:]...)
		}
		for i, q := range asked {
			if row, own := p.directory.Row(q.known); own {
				t.score.Query(queries[i*p.width:(i+1)*p.width], p.rowOf(row), t.row(t.weights, q.relation), q.ofDst)
			}
		}
		// Other ranks add zeros.
		if err := world.SumFloat32s(p.comm, queries); err != nil {
			return ranks, err
		}
		// Rows of vertices times questions: the product of a tall matrix is faster than that of a wide one.
		resize(&scores, own*n)
		p.team.MatMulTransB(kernels.HostMat(own, n, scores), kernels.HostMat(own, p.width, p.z),
			kernels.HostMat(n, p.width, queries), false)
		reached := make([]float32, n) // scores of the answers
		for i, v := range answers {
			if row, is := p.directory.Row(v); is {
				reached[i] = scores[int(row)*n+i]
			}
		}
		if err := world.SumFloat32s(p.comm, reached); err != nil {
			return ranks, err
		}
		counts := t.countScores(p.team, asked, scores, reached, kinds)
		if err := world.SumInt64s(p.comm, counts); err != nil {
			return ranks, err
		}
		for i := range n {
			ranks.Add(counts[2*i], counts[2*i+1])
		}
	}
	return ranks, nil
}

// countScores returns for each question the numbers of own rows with a higher score than the answer and with the same
// one, among vertices of the answer's kind that are no known answers.
func (t *tripleScorer) countScores(team *kernels.Team, asked []question, scores, reached []float32, kinds []int) []int64 {
	n, all := len(asked), make([]int64, 2*len(asked))
	wanted := make([]int, n)
	for i, q := range asked {
		if wanted[i] = t.of.Relations[q.relation].To; q.ofDst {
			wanted[i] = t.of.Relations[q.relation].From
		}
	}
	count := func(counts []int64, i int, s float32, by int64) {
		if s == reached[i] {
			counts[2*i+1] += by
		} else if !(s < reached[i]) { // NaN is no good score
			counts[2*i] += by
		}
	}
	var lock sync.Mutex
	team.Run(len(kinds), pieceOfPairs, func(lo, hi int) {
		counts := make([]int64, 2*n)
		for row := lo; row < hi; row++ {
			for i, s := range scores[row*n : (row+1)*n] {
				if s < reached[i] || kinds[row] != wanted[i] {
					continue // nearly always
				}
				count(counts, i, s, 1)
			}
		}
		lock.Lock()
		defer lock.Unlock()
		for i, c := range counts {
			all[i] += c
		}
	})
	for i, q := range asked {
		for _, row := range t.answers[q] {
			count(all, i, scores[int(row)*n+i], -1)
		}
	}
	return all
}
