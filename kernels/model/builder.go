package model

// Builder is the input of a layer's construction: the network's spec, and the list of values
// that the layer needs memory for. It allocates nothing: a layer has no memory.
type Builder struct {
	Spec   Spec
	Sparse bool // the features are sparse

	layer          int
	part           Part
	skips          []Skip
	constant       bool      // nothing below the layer is trained
	gradInPlace    bool      // the input's gradient overwrites the input's matrix
	activationDone bool      // the output's gradient already includes the activation's derivative
	outputUnread   bool      // of the last layer: only the loss reads its output, whose gradient may overwrite it
	params         [][]Param // of each layer
	places         [values]storage
	scratch        [][2]int // rows and columns
	sums           sums
}

// sums has the sizes that Builder.Sums sets, 0 for layers that are not Summing.
type sums struct{ columns, settled, state int }

// storage is the location of a layer's value.
type storage struct {
	kind storageKind
	cols int   // of an allocated value
	in   Value // the value that it replaces
}

type storageKind uint8

const (
	elsewhere storageKind = iota // in another layer, or nowhere
	allocated                    // in its own matrix
	inPlace                      // of another value of the layer
)

// Last reports whether layer l makes the logits: it has no activation and no
// dropout.
func (b *Builder) Last(l int) bool { return l == b.Spec.Layers()-1 }

// Plain reports whether the layer has no activation and no dropout: the last layer, and layers
// whose activation a later layer applies.
func (b *Builder) Plain() bool { return b.part.Plain }

// Gathers reports whether the layer is of a kind that uses the graph.
func (b *Builder) Gathers() bool { return b.part.kind.Coefficients != nil }

// Skips returns the earlier layers whose outputs this one reads (Part.From).
func (b *Builder) Skips() []Skip { return b.skips }

// Depth returns the layer's number among layers of its kind, from 1.
func (b *Builder) Depth() int { return b.part.Depth }

// Weight returns the i-th weight of layer l, in the order of Kind.Weights.
func (b *Builder) Weight(l, i int) Param { return b.params[l][i] }

// Alloc gives a value of the layer a matrix [n x cols]. Results of gathers (Gathered,
// EmittedGrad) have one anyway.
func (b *Builder) Alloc(v Value, cols int) { b.places[v] = storage{kind: allocated, cols: cols} }

// ShareStorage stores a value in another one's matrix of the layer: it is the same value, or
// replaces it.
func (b *Builder) ShareStorage(v, other Value) { b.places[v] = storage{kind: inPlace, in: other} }

// shareEnds stores the emitted rows in the input, the gradient of gathered rows in the output's
// gradient, and the input's gradient in the gradient of emitted rows.
func (b *Builder) shareEnds() {
	b.ShareStorage(Emitted, Input)
	b.ShareStorage(GatheredGrad, OutputGrad)
	b.ShareStorage(InputGrad, EmittedGrad)
}

// AllocGrad gives the gradient of the layer's input, or a value of the same width, a matrix [n
// x in]. An input that is not trained, such as the first layer's, gets none.
func (b *Builder) AllocGrad(v Value) {
	if !b.constant {
		b.Alloc(v, b.Spec.Dims[b.layer])
	}
}

// AllocInputGrad sets the storage of the input's gradient. It is for layers whose input gradient
// has no term except products with weights.
func (b *Builder) AllocInputGrad() {
	if b.gradInPlace {
		b.ShareStorage(InputGrad, Input)
		return
	}
	b.AllocGrad(InputGrad)
}

// Scratch returns the number, for Step.Scratch, of a matrix [rows x cols] that does not grow
// with the vertices.
func (b *Builder) Scratch(rows, cols int) int {
	b.scratch = append(b.scratch, [2]int{rows, cols})
	return len(b.scratch) - 1
}

// Sums sets the sizes of a Summing layer's data. columns is the number of sums over vertices.
// settled is the number of values that Settle derives from the sums of all ranks, for stages to
// read. state is the number of values that are stored from the forward pass to the backward pass;
// the first ones are the settled values.
func (b *Builder) Sums(columns, settled, state int) { b.sums = sums{columns, settled, state} }

// Hidden returns the matrix that the layer multiplies by its weights.
func (b *Builder) Hidden() Hidden {
	return Hidden{from: Input, first: b.layer == 0, constant: b.constant, gradInPlace: b.gradInPlace,
		drop: b.Spec.dropout(b.layer, b.Spec.Dropout)}
}

// Dropout returns the dropout of layer l's output, nil if it has none, or if the next layer applies
// it (Spec.Whole).
func (b *Builder) Dropout(l int) *Dropout {
	if b.part.Plain || b.part.Kept || b.Spec.Whole(l+1) {
		return nil
	}
	// Stream 0 is the input's dropout; layer l uses stream l+1.
	return b.Spec.dropout(l+1, b.Spec.Dropout)
}

// AttentionDropout returns the dropout of the attention of layer l's edges, nil if it has
// none.
func (b *Builder) AttentionDropout(l int) *Dropout {
	return b.Spec.dropout(l+attentionStream, b.Spec.AttentionDropout)
}

// dropout returns the dropout of a stream of random numbers, nil if nothing is dropped.
func (s Spec) dropout(stream int, p float64) *Dropout {
	if p == 0 {
		return nil
	}
	return &Dropout{seed: s.Seed, stream: stream, p: p}
}
