package model

import "siafu/kernels"

// Pass is one forward pass through a network and the backward pass.
type Pass struct {
	Epoch int
	Train bool // dropout is drawn
	// Targets tells that of the logits only those of training vertices are wanted.
	Targets bool
}

// Stage is a part of a layer's work that needs no edge of the graph, or the loss
// after the last layer. An interval goes through the stages of all layers in
// their order, and backward from the last layer to the first.
type Stage uint8

// The stages of a layer; between Emit and Apply its rows are gathered, between
// ApplyBackward and EmitBackward the gradients of what was gathered.
const (
	Draw          Stage = iota // of the first layer: from the features to Input
	Emit                       // from Input to Emitted
	Apply                      // from Gathered to Output
	Loss                       // of the last layer's Output, which is the network's
	ApplyBackward              // from OutputGrad to GatheredGrad
	EmitBackward               // from EmittedGrad to InputGrad
	Stages
)

// Backward reports whether a stage is one of the backward pass.
func (s Stage) Backward() bool {
	return s == ApplyBackward || s == EmitBackward || s == gatherBackward
}

// Value names a matrix that stages, or what lies between them, pass on: what a
// layer is given, what it makes, and what it saves for the backward pass. All have a
// row for each vertex.
type Value uint32

// The values of a layer. Those of its neighbours are the same matrices: Input is
// the Output of the layer before, and OutputGrad the InputGrad of the layer after.
const (
	Input        Value = iota // H [n x in]; in the first layer the features with their dropout
	Emitted                   // the rows that neighbours gather [n x GatherWidth]
	Scores                    // of attention: r [n x Attention.Near()]
	Gathered                  // [n x GatherWidth], with attention [n x columns]
	Output                    // H' [n x out]; logits in the last layer
	OutputGrad                // [n x out]
	GatheredGrad              // that of Gathered
	EmittedGrad               // [n x GatherWidth]
	Signed                    // of attention: what kernels.SignedAttention gathers beside [n x GatherWidth]
	ScoresGrad                // that of Scores
	AlongGrad                 // of attention: what a vertex's edges give the weights along them [n x Attention.Along()]
	InputGrad                 // [n x in]; none in the first layer
	Own                       // the first of those that a layer saves beside these
)

// Behind the names are the gradient of a layer's output that Skips have added up, and
// what a layer's own Skips read and write, or in a first layer KeptInputs.
const (
	skipGrad = Own + 4 + iota
	values
	from = values
)

// Flow is what a stage reads and writes, and of which weights it makes the
// gradients. Where one value lies in the place of another (Builder.In), a stage that
// writes it overwrites the other. A stage without Grads works row by row: what it
// writes of a vertex depends on the weights, the pass, the vertex's id and its rows,
// and neither on other vertices nor on its place among them.
type Flow struct {
	Reads, Writes []Value
	Grads         []Param
}

// Layer is one layer of a network. It holds shapes and settings: what its stages
// compute is a function of the values that its Flow says they read, of the
// weights, and of the features and the counters of dropout, which stand as long as
// the network. Any number of Steps may go through one layer at once, here or
// in another process; what one stage has made another one can make again.
//
// A stage writes what its Flow says, all rows of it, and the gradients of those
// weights that it knows; after EmitBackward the gradients of all the layer's
// weights have been set.
type Layer interface {
	// GatherWidth is the width of the rows that neighbours gather, 0 for a layer
	// without the graph.
	GatherWidth() int
	// GathersBackward reports whether the gradient of what was gathered is needed. It
	// is not in a first layer that gathers its constant input.
	GathersBackward() bool
	// Flow returns the flow of one of the four stages; the loss has none.
	Flow(s Stage) Flow
	// Run runs a stage, Loss excepted.
	Run(s Stage, x *Step)
}

// Attended is a layer whose edges carry attention instead of coefficients: it
// has the values Scores and ScoresGrad, and AlongGrad where there are weights along edges.
type Attended interface {
	Layer
	// Attention is that of the layer's edges, without its dropout, and with the weights
	// along them of a flat vector; of none it is their shape.
	Attention(weights kernels.Mat) kernels.Attention
	// EdgeDropout is the dropout of attention, nil where nothing is dropped.
	EdgeDropout() *Dropout
}

// Summing is a layer that needs sums over the vertices of all ranks (Builder.Sums). Its
// Emit and, in the backward pass, its ApplyBackward write those of their vertices to Step.Sums,
// and do not work row by row. The caller adds them up, in the order of intervals and then
// of ranks, when all intervals have been there, and has them settled: Apply and EmitBackward
// read Step.Settled. Such a layer does not gather.
type Summing interface {
	Layer
	// Summed reports whether a pass sums in the forward pass.
	Summed(p Pass) bool
	// Settle makes of the sums of this rank and of all, after which stands the number of
	// vertices, what is kept in state from a forward pass to the backward pass, and begins with
	// what stages read. all is nil where the pass does not sum. In the backward pass it sets
	// the rank's gradients of the layer's weights in the flat vector grad.
	Settle(back bool, own, all []float64, weights, grad []float32, state []float64)
}

// Step is what a stage works on: the values of an interval and the weights, the
// pass, and who computes.
type Step struct {
	Ops  kernels.Ops
	Pass Pass

	frame  *Frame
	layer  int
	values []kernels.Mat
	mask   kernels.Dropout
}

// At is the matrix of a value [n x ·], none where the layer has no such value.
func (x *Step) At(v Value) kernels.Mat { return x.values[v] }

// W is a weight [Rows x Cols] and Grad its gradient.
func (x *Step) W(w Param) kernels.Mat    { return w.In(x.frame.Weights) }
func (x *Step) Grad(w Param) kernels.Mat { return w.In(x.frame.Grad) }

// Scratch is the i-th matrix that the layer has asked its Builder for. What it
// holds is a stage's own.
func (x *Step) Scratch(i int) kernels.Mat { return x.frame.scratch[x.layer][i] }

// Sums is where a Summing layer puts those of its vertices, and Settled [· x 1] what has
// been made of all ranks'.
func (x *Step) Sums() kernels.Vector[float64] { return x.frame.Sums(x.layer) }
func (x *Step) Settled() kernels.Mat          { return x.frame.Settled(x.layer) }

// Mask is d as the pass draws it, until the next call: nil where d is nil or
// nothing is dropped.
func (x *Step) Mask(d *Dropout) *kernels.Dropout {
	if d == nil || !x.Pass.Train {
		return nil
	}
	x.mask = d.of(x.Pass, x.frame.input.IDs)
	return &x.mask
}

// Dropout says with what probability elements of a value are dropped, and which
// random numbers that takes.
type Dropout struct {
	seed   uint64
	stream int
	p      float64
}

// of is the mask of a pass, with counters of these ids.
func (d *Dropout) of(p Pass, ids kernels.Vector[uint32]) kernels.Dropout {
	return kernels.Dropout{Seed: d.seed, Epoch: p.Epoch, Layer: d.stream, P: d.p, IDs: ids}
}

// Mask is that of a pass for rows with these dataset ids, in the place of mask:
// nil where d is nil or nothing is dropped.
func (d *Dropout) Mask(p Pass, ids kernels.Vector[uint32], mask *kernels.Dropout) *kernels.Dropout {
	if d == nil || !p.Train {
		return nil
	}
	*mask = d.of(p, ids)
	return mask
}
