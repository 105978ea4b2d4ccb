package protocol

// epochSums collects the gradients of one epoch on one server.
type epochSums struct {
	mine    []bool // by interval of all ranks: whether the interval chose this server
	layers  []layerSum
	applied int // layers applied to the weights
}

// layerSum collects the gradients of one layer.
type layerSum struct {
	next    int         // intervals before this one are in the sum or chose another server
	early   [][]float32 // by interval: gradients that arrived before their order
	own     part        // of this server
	parts   []part      // by server, including this one when complete
	heard   int         // number of complete parts
	applied bool
}

// part is the sum of some intervals' gradients; values is nil without gradients.
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

// reset reuses the sums of an applied epoch for another.
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

func accumulate(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}
