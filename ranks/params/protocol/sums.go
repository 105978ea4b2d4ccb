package protocol

// epochSums collects the gradients of one epoch on one server.
type epochSums struct {
	mine    []bool // by interval of all ranks: it chose this server
	layers  []layerSum
	applied int // layers that the weights have been updated with
}

// layerSum collects those of one layer.
type layerSum struct {
	next    int         // intervals before this one are in the sum or chose another server
	early   [][]float32 // by interval: gradients that have come before their turn
	own     part        // of this server
	parts   []part      // by server, this one too once it is complete
	heard   int         // complete ones among them
	applied bool
}

// part is the sum of some intervals' gradients; values is nil where there are
// none.
type part struct {
	values []float32
	count  int
}

func newEpochSums(intervals, layers, servers int) *epochSums {
	e := &epochSums{mine: make([]bool, intervals), layers: make([]layerSum, layers)}
	for l := range e.layers {
		e.layers[l] = layerSum{early: make([][]float32, intervals), parts: make([]part, servers)}
	}
	return e
}

// reset makes the sums of an epoch that has been applied those of another.
func (e *epochSums) reset() {
	clear(e.mine)
	for l := range e.layers {
		e.layers[l] = layerSum{early: e.layers[l].early, parts: e.layers[l].parts}
	}
	e.applied = 0
}

// add adds a gradient, the first one by copying it.
func (p *part) add(values []float32, blocks *pool[[]float32]) {
	if p.count == 0 {
		p.values = blocks.get()
		copy(p.values, values)
	} else {
		accumulate(p.values, values)
	}
	p.count++
}

// accumulate is dst[i] += src[i].
func accumulate(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}
