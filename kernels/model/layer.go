package model

import "siafu/kernels"

// Pass is one forward pass through a network and the backward pass.
type Pass struct {
	Epoch int
	Train bool // with dropout
	// Targets requests only the logits of training vertices.
	Targets bool
}

// Stage is a part of a layer's work that needs no edge of the graph, or the loss after the
// last layer. An interval runs the stages of all layers in order, and backward from the last
// layer to the first.
type Stage uint8

// The stages of a layer; between Emit and Apply its rows are gathered, between ApplyBackward
// and EmitBackward the gradients of gathered rows.
const (
	Draw          Stage = iota // of the first layer: from the features to Input
	Emit                       // from Input to Emitted
	Apply                      // from Gathered to Output
	Loss                       // loss of the last layer's Output
	ApplyBackward              // from OutputGrad to GatheredGrad
	EmitBackward               // from EmittedGrad to InputGrad
	Stages
)

// Backward reports whether a stage is one of the backward pass.
func (s Stage) Backward() bool {
	return s == ApplyBackward || s == EmitBackward || s == gatherBackward || s == receiveGrads || s == sendGrads
}

// Value names a matrix that stages or gathers pass on: input and output of a layer, and values
// saved for the backward pass. All have a row per vertex.
type Value uint32

// The values of a layer. Adjacent layers share matrices: Input is the Output of the preceding
// layer, and OutputGrad the InputGrad of the following one.
const (
	Input        Value = iota // H [n x in]; in the first layer the features with their dropout, which may be BF16: read by Hidden
	Emitted                   // the rows that neighbours gather [n x GatherWidth]
	Scores                    // of attention: r [n x Attention.ScoreWidth()]
	Gathered                  // [n x GatherWidth], with attention [n x columns]
	Output                    // H' [n x out]; logits in the last layer
	OutputGrad                // [n x out]
	GatheredGrad              // gradient of Gathered
	EmittedGrad               // [n x GatherWidth]
	Signed                    // of attention: sums of AttentionGather for AttentionGradSigned [n x GatherWidth]
	ScoresGrad                // gradient of Scores
	// of attention: gradient of the weights along edges, summed over a vertex's edges [n x
	// Attention.AlongWidth()]
	AlongGrad
	InputGrad // [n x in]; none in the first layer
	Own       // the first of a layer's additional values
)

// Further values are the gradient of a layer's output, summed over Skips, and the values that a
// layer's own Skips read and write. In a first layer the latter are the cached powers.
const (
	skipGrad = Own + 4 + iota
	values
	from = values
)

// Flow lists the values that a stage reads and writes, and the weights whose gradients it
// computes. If values share storage (Builder.ShareStorage), writing one overwrites the other.
// A stage without Grads works row by row: a vertex's results depend only on the weights, the
// pass, the vertex's id and its rows.
type Flow struct {
	Reads, Writes []Value
	Grads         []Param
}

// Layer is one layer of a network. It has only shapes and settings. The result of a stage depends
// on the values that its Flow reads, on the weights, and on constants: the features and the
// dropout counters. Therefore several Steps may run one layer at once, also in other processes,
// and every stage can be repeated.
//
// A stage writes all rows of the values in its Flow, and the gradients of the weights in it.
// After EmitBackward the gradients of all the layer's weights are set.
type Layer interface {
	// GatherWidth is the width of the rows that neighbours gather, 0 for a layer
	// without the graph.
	GatherWidth() int
	// GathersBackward reports whether the gradient of gathered rows is needed. A first layer that
	// gathers its constant input does not need it.
	GathersBackward() bool
	// Flow returns the flow of one of the four stages; the loss has none.
	Flow(s Stage) Flow
	// Run runs a stage, Loss excepted.
	Run(s Stage, x *Step)
}

// stages has the flow and the work of each stage of a layer. A stage without an entry does
// nothing.
type stages [Stages]stageWork

type stageWork struct {
	Flow
	run func(x *Step)
}

// Flow implements Layer.
func (t *stages) Flow(s Stage) Flow { return t[s].Flow }

// Run implements Layer.
func (t *stages) Run(s Stage, x *Step) {
	if run := t[s].run; run != nil {
		run(x)
	}
}

// pointwise is a layer without the graph.
type pointwise struct{ stages }

func (pointwise) GatherWidth() int { return 0 }

func (pointwise) GathersBackward() bool { return false }

// Attended is a layer whose edges carry attention instead of coefficients: it has the values
// Scores and ScoresGrad, and AlongGrad if there are weights along edges.
type Attended interface {
	Layer
	// Attention returns the attention of the layer's edges, without dropout, with weights
	// along edges from a flat vector, or only their shape without a vector.
	Attention(weights kernels.Mat) kernels.Attention
	// EdgeDropout returns the dropout of attention, nil without dropout.
	EdgeDropout() *Dropout
}

// Summing is a layer that needs sums over the vertices of all ranks (Builder.Sums). Its Emit
// and, in the backward pass, its ApplyBackward write their vertices' sums to Step.Sums, and do
// not work row by row. After all intervals, the caller adds the sums in the order of intervals
// and then of ranks, and calls Settle. Apply and EmitBackward read Step.Settled. Such a layer
// does not gather.
type Summing interface {
	Layer
	// Summed reports whether a pass sums in the forward pass.
	Summed(p Pass) bool
	// Settle computes state from the sums of this rank (own) and of all ranks (all, followed
	// by the number of vertices). state is stored from the forward pass to the backward pass,
	// and starts with the values that stages read. all is nil if the pass does not sum. In the
	// backward pass it sets the rank's gradients of the layer's weights in the flat vector
	// grad.
	Settle(back bool, own, all []float64, weights, grad []float32, state []float64)
}

// Step is the data of a stage: the values of an interval, the weights, the pass, and the Ops.
type Step struct {
	Ops  kernels.Ops
	Pass Pass

	frame  *Frame
	layer  int
	values []kernels.Mat
	mask   kernels.Dropout
}

// At returns the matrix of a value [n x ·], none if the layer has no such value.
func (x *Step) At(v Value) kernels.Mat { return x.values[v] }

// W returns a weight [Rows x Cols], and Grad its gradient.
func (x *Step) W(w Param) kernels.Mat    { return w.In(x.frame.Weights) }
func (x *Step) Grad(w Param) kernels.Mat { return w.In(x.frame.Grad) }

// Scratch returns the i-th scratch matrix that the layer requested. Its contents are valid
// within a stage.
func (x *Step) Scratch(i int) kernels.Mat { return x.frame.scratch[x.layer][i] }

// Sums returns the destination of a Summing layer's sums, and Settled [· x 1] the values
// computed from all ranks' sums.
func (x *Step) Sums() kernels.Vector[float64] { return x.frame.Sums(x.layer) }
func (x *Step) Settled() kernels.Mat          { return x.frame.Settled(x.layer) }

// Mask returns d for the pass, valid until the next call: nil if d is nil or nothing is
// dropped.
func (x *Step) Mask(d *Dropout) *kernels.Dropout {
	return d.Mask(x.Pass, x.frame.input.IDs, &x.mask)
}

// Dropout has the probability with which elements of a value are dropped, and the stream of
// random numbers.
type Dropout struct {
	seed   uint64
	stream int
	p      float64
}

// Mask returns the mask of a pass for rows with these dataset ids, stored in mask: nil if d is
// nil or nothing is dropped.
func (d *Dropout) Mask(p Pass, ids kernels.Vector[uint32], mask *kernels.Dropout) *kernels.Dropout {
	if d == nil || !p.Train {
		return nil
	}
	*mask = kernels.Dropout{Seed: d.seed, Epoch: p.Epoch, Layer: d.stream, P: d.p, IDs: ids}
	return mask
}
