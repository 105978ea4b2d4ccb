package model

import "slices"

// Passes counts how often a pass over the vertices reads data in the order of the vertices. One task
// after another of an interval reads the same rows from memory: they count once, until other intervals
// follow.
type Passes struct {
	Gathers, GathersBackward []int // layers whose edges are read, forward and backward
	Features                 int   // times that features are read
	Cached                   int   // times that all cached powers of features are read
	Vertices                 int   // sequences of tasks without a pause
	// Fetched are the floats per vertex of matrices of values that no gather reads (Streamed), which a
	// sequence of tasks reads or writes. Written are those that it writes.
	Fetched, Written int
	// Sums is the floats per vertex of sums of slices, which one sequence writes and another one reads.
	Sums int
	// Random means that a gather reads the features themselves, at random.
	Random bool
}

// Passes returns the passes of a training epoch, and of an evaluation with the memory of training. m
// is the lifetime of values, and Spec.Streams must be set.
func (n *Network) Passes(m Memory) (epoch, evaluation Passes) {
	p := newPlan(n, m)
	end := slices.IndexFunc(p.laid, func(e event) bool { return e.Stage == Loss })
	return p.passes(p.laid), p.passes(p.laid[:end+1])
}

// passes counts the passes of events.
func (p *plan) passes(events []event) (sum Passes) {
	var fetched, written map[int]int // columns that the current sequence of tasks has used, by buffer
	var features, cached bool        // it has read them
	begin := func() {
		fetched, written, features, cached = map[int]int{}, map[int]int{}, false, false
		sum.Vertices++
	}
	begin()
	numbers := p.sequences(events)
	for i, e := range events {
		if i > 0 && numbers[i] != numbers[i-1] {
			begin()
		}
		switch e.Stage {
		case gather:
			sum.Gathers = append(sum.Gathers, p.gatherSlices(&sum, e)...)
			sum.Random = sum.Random || e.Layer == 0 && len(e.shared) == 0
		case gatherBackward:
			sum.GathersBackward = append(sum.GathersBackward, p.gatherSlices(&sum, e)...)
		default:
			x, kept := p.readsInput(e.Do)
			sum.Features += count(x && !features)
			sum.Cached += count(kept && !cached)
			features, cached = features || x, cached || kept
		}
		use := func(used map[int]int, total *int) func(buffer, cols int) {
			return func(buffer, cols int) {
				*total += max(cols-used[buffer], 0)
				used[buffer] = max(used[buffer], cols)
			}
		}
		p.eachStreamed(e, slices.Concat(e.reads, e.writes), use(fetched, &sum.Fetched))
		p.eachStreamed(e, e.writes, use(written, &sum.Written))
	}
	return sum
}

// gatherSlices returns the layer of a gather as often as edges are read for it, once for each slice. It
// counts the rows, which each slice reads, and the sums of all slices but the last.
func (p *plan) gatherSlices(sum *Passes, e event) (list []int) {
	bounds := p.slices(e.Layer)
	if bounds == nil {
		return []int{e.Layer}
	}
	count := len(bounds) - 1
	p.eachStreamed(e, e.shared, func(_, cols int) { sum.Fetched += count * cols })
	sum.Sums += bounds[count-1]
	sum.Vertices += count - 1
	for range count {
		list = append(list, e.Layer)
	}
	return list
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// readsInput reports whether a stage reads the features of its vertices, and their cached powers.
func (p *plan) readsInput(d Do) (features, cached bool) {
	if d.Stage == Draw {
		return true, false
	}
	if d.Stage == Loss {
		return false, false
	}
	for _, v := range p.net.Layers[d.Layer].Flow(d.Stage).Reads {
		if p.net.keeps(ref{d.Layer, v}) {
			cached = true
		} else if _, stored := p.net.root(d.Layer, v); v == Input && d.Layer == 0 && !stored {
			features = true
		}
	}
	return features, cached
}

// eachStreamed calls do for the buffers of values that are read in order, and the values' widths.
func (p *plan) eachStreamed(e event, list []ref, do func(buffer, cols int)) {
	for _, r := range list {
		k, ok := p.index[spanKey{r, e.phase()}]
		if !ok {
			k, ok = p.index[spanKey{r, forward}]
		}
		if ok && p.streamed[p.spans[k].buffer] {
			do(p.spans[k].buffer, p.spans[k].cols)
		}
	}
}
