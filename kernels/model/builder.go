package model

// Builder is what a layer is made from: the network's spec, and the list of the
// values that the layer wants room for. It gives no memory: a layer has none.
type Builder struct {
	Spec   Spec
	Sparse bool // the features are

	layer    int
	part     Part
	skips    []Skip
	constant bool      // nothing below the layer is trained
	through  bool      // the gradient of its input takes the place of that
	gone     bool      // that of its output has gone through its activation
	params   [][]Param // of each layer
	places   [values]storage
	scratch  [][2]int // rows and columns
	sums     sums
}

// sums are the sizes of what a Summing layer has, 0 of another.
type sums struct{ columns, settled, state int }

// storage says where a value of a layer lies.
type storage struct {
	kind storageKind
	cols int   // of a room
	in   Value // whose place it takes
}

// storageKind is the kind of a place.
type storageKind uint8

const (
	elsewhere storageKind = iota // in another layer, or nowhere
	room                         // memory of its own
	inPlace                      // of another value of the layer
)

// Last reports whether layer l makes the logits: it has no activation and no
// dropout.
func (b *Builder) Last(l int) bool { return l == b.Spec.Layers()-1 }

// Plain reports whether the layer has no activation and no dropout: the last one, and those
// whose rows others finish.
func (b *Builder) Plain() bool { return b.part.Plain }

// Gathers reports whether the layer is of a kind that uses the graph.
func (b *Builder) Gathers() bool { return b.part.kind.Coefficients != nil }

// Skips are the earlier layers whose outputs this one reads (Part.From).
func (b *Builder) Skips() []Skip { return b.skips }

// Depth is the layer's number among those of its kind, from 1.
func (b *Builder) Depth() int { return b.part.Depth }

// Weight is the i-th weight of layer l, in the order of Kind.Weights.
func (b *Builder) Weight(l, i int) Param { return b.params[l][i] }

// Alloc gives a value of the layer a matrix [n x cols]. What gathers write
// (Gathered, EmittedGrad) has one without.
func (b *Builder) Alloc(v Value, cols int) { b.places[v] = storage{kind: room, cols: cols} }

// ShareStorage lets a value lie where another one of the layer does: it is the same matrix, or
// replaces it.
func (b *Builder) ShareStorage(v, other Value) { b.places[v] = storage{kind: inPlace, in: other} }

// AllocGrad gives the gradient of the layer's input, or what is as wide, a matrix
// [n x in]; what is not trained, such as the first layer's input, gets none.
func (b *Builder) AllocGrad(v Value) {
	if !b.constant {
		b.Alloc(v, b.Spec.Dims[b.layer])
	}
}

// AllocInputGrad is the place of the gradient of the layer's input where products alone make it.
func (b *Builder) AllocInputGrad() {
	if b.through {
		b.ShareStorage(InputGrad, Input)
		return
	}
	b.AllocGrad(InputGrad)
}

// Scratch is the number of a matrix [rows x cols] that does not grow with the
// vertices, for Step.Scratch.
func (b *Builder) Scratch(rows, cols int) int {
	b.scratch = append(b.scratch, [2]int{rows, cols})
	return len(b.scratch) - 1
}

// Sums gives a Summing layer room for N sums, for what stages read of what is made
// of them, and for all of that, which begins with it.
func (b *Builder) Sums(columns, settled, state int) { b.sums = sums{columns, settled, state} }

// Hidden returns the matrix that the layer multiplies by its weights.
func (b *Builder) Hidden() Hidden {
	return Hidden{first: b.layer == 0, constant: b.constant, through: b.through, drop: b.Spec.dropout(b.layer, b.Spec.Dropout)}
}

// Dropout returns the dropout of layer l's output, nil if it has none.
func (b *Builder) Dropout(l int) *Dropout {
	if b.part.Plain || b.part.Kept {
		return nil
	}
	// Layer 0 is the input's, so that no two masks share a counter.
	return b.Spec.dropout(l+1, b.Spec.Dropout)
}

// AttentionDropout is the same for the attention of layer l's edges.
func (b *Builder) AttentionDropout(l int) *Dropout {
	return b.Spec.dropout(l+attentionStream, b.Spec.AttentionDropout)
}

// dropout is that of a stream of random numbers, nil where nothing is dropped.
func (s Spec) dropout(stream int, p float64) *Dropout {
	if p == 0 {
		return nil
	}
	return &Dropout{seed: s.Seed, stream: stream, p: p}
}
