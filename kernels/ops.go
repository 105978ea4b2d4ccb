package kernels

import (
	"unsafe"

	"siafu/graph"
	"siafu/internal/mapped"
)

// Ops is the arithmetic of training on matrices that lie where it computes. The
// layers of networks, gathers, the loss, optimisers and whatever packs rows for
// other ranks call it and nothing else; a Team is the one that computes on this
// machine's processors. Sub-package kerneltest is its conformance suite.
//
// An Ops serves one caller at a time. A rank has many: one a worker, and one for
// each interval of vertices, a Fork, which borrows what the worker that runs it
// has. All of them compute in the same memory.
//
// Shapes that do not fit panic, as those of kernels do. A method may return
// before its work is done (a kernel on a stream), but everything that is called
// later, on any Ops of the rank, finds it done; Download and whatever returns
// numbers waits. Host memory that a method was given may change as soon as it has
// returned. A dst must not overlap an operand unless the method allows it. Sums have
// an order that depends on shapes alone: the same call gives the same bits.
//
// A Dropout is a function of counters (seed, epoch, layer, id, column), so that
// every Ops draws the same masks, and none keeps one.
type Ops interface {
	Memory
	Products
	Features
	Gathers
	Attentions
	Rows
	Losses
	Norms

	// Fork is another Ops of one worker with the same arithmetic and memory.
	Fork() Ops
	// Borrow makes this Ops use the workspace of owner, which is of the same kind
	// and size, from now on. Of those that share a workspace one may run at a time.
	Borrow(owner Ops)
	// Intervals is into how many intervals the vertices of a rank are best divided,
	// given how many have rows that fit into a processor's cache.
	Intervals(cached int) int
	// Kernel names the arithmetic.
	Kernel() string
	// Close ends an Ops that is idle; a second Close does nothing.
	Close()
}

// Memory is where an Ops computes. NewMat, NewVector and Place ask for it, Read
// and Write go between it and the host's.
type Memory interface {
	// Remote reports whether Go code cannot read it.
	Remote() bool
	// Alloc gives N zero bytes, aligned to 64, that live as long as a. Where
	// there is no memory it panics, as mapped.Make does.
	Alloc(a *mapped.Arena, bytes int) unsafe.Pointer
	// Upload sets memory that Alloc gave, or a part of it, to src.
	Upload(dst unsafe.Pointer, src []byte)
	// Download sets dst to a part of memory that Alloc gave.
	Download(dst []byte, src unsafe.Pointer)
	// Copy sets dst to src, of the same shape, and Clear to zeros.
	Copy(dst, src Mat)
	Clear(dst Mat)
}

// Products are the products of layers, their epilogues, and the gradients of
// both. Where a may be of BF16, sums are float32 all the same.
type Products interface {
	// MatMul is dst [m x n] (+)= a [m x k] b [k x n]; a may be of BF16.
	MatMul(dst, a, b Mat, add bool)
	// MatMulTransA is dst [m x n] (+)= a [k x m]ᵀ b [k x n]; a may be of BF16.
	MatMulTransA(dst, a, b Mat, add bool)
	// MatMulTransB is dst [m x n] (+)= a [m x k] b [n x k]ᵀ.
	MatMulTransB(dst, a, b Mat, add bool)
	// MatMulBiasReLUDropout is dst [m x n] = dropout(relu(a [m x k] b [k x n] +
	// bias)); a may be of BF16.
	MatMulBiasReLUDropout(dst, a, b, bias Mat, relu bool, drop *Dropout)
	// BiasReLUDropout is dst [n x cols] = dropout(relu(z + bias)). dst may be z. No
	// bias adds nothing.
	BiasReLUDropout(dst, z, bias Mat, relu bool, drop *Dropout)
	// BiasReLUDropoutGrad is dst [n x cols], the gradient of z, from that of the
	// output h, and bias [1 x cols], unless it is none, its sums. dst may be g.
	BiasReLUDropoutGrad(dst, bias, g, h Mat, relu bool, drop *Dropout)
	// BiasELUDropout and BiasELUDropoutGrad are the same with an ELU.
	BiasELUDropout(dst, z, bias Mat, drop *Dropout)
	BiasELUDropoutGrad(dst, bias, g, h Mat, drop *Dropout)
	// ColumnSums is dst [1 x cols] (+)= the sums of the columns of g.
	ColumnSums(dst, g Mat, add bool)
	// Add is dst += x, of the same shape.
	Add(dst, x Mat)
	// Blend is dst = keep·dst + share·x, of the same shape; keep 0 reads no dst, and x may
	// be dst.
	Blend(dst Mat, keep float32, x Mat, share float32)
	// Activate is dst = f(z), of the same shape, and may replace z; ActivateGrad is dst =
	// g·f'(z), and may replace either.
	Activate(dst, z Mat, f Activation)
	ActivateGrad(dst, g, z Mat, f Activation)
	// PReLU is dst = z > 0 ? z : slope·z, slope [1 x 1]; PReLUGrad is dst, the gradient of z,
	// and that of the slope, from g and w, the slope. dst may be z, or g.
	PReLU(dst, z, slope Mat)
	PReLUGrad(dst, slope, g, z, w Mat)
	// Larger is dst = max(dst, x), of the same shape. LargerGrad is dst (+)= g where x is m,
	// the maximum, and clears g there.
	Larger(dst, x Mat)
	LargerGrad(dst, g, x, m Mat, add bool)
	// MeanHeads is dst [n x width] = the mean of the heads of x [n x heads·width],
	// plus bias [1 x width]; MeanHeadsGrad its gradient [n x heads·width] from g.
	MeanHeads(dst Mat, heads int, x, bias Mat)
	MeanHeadsGrad(dst Mat, heads int, g Mat)
	// Step is a step of o, counted from 1, of a parameter w with its gradient and
	// o's state of it, all of one shape.
	Step(o Optimizer, step int, w, grad Mat, state []Mat, decay bool)
}

// Features are the operations on the input of a network.
type Features interface {
	// DropoutRows is dst = dropout(x), of the same shape.
	DropoutRows(dst, x Mat, drop *Dropout)
	// CopyColumns is dst [n x w] = columns [from, from+w) of x.
	CopyColumns(dst, x Mat, from int)
	// PutColumns sets columns [from, from+w) of dst, which may be of BF16, to x
	// [n x w].
	PutColumns(dst Mat, from int, x Mat)
	// SpreadColumns is CopyColumns of a sparse matrix.
	SpreadColumns(dst Mat, from int, xs Sparse)
	// SparseToDense is dst [n x cols] = dropout(xs), zeros included.
	SparseToDense(dst Mat, xs Sparse, drop *Dropout)
	// SparseMatMul is dst [n x m] = dropout(xs) w.
	SparseMatMul(dst Mat, xs Sparse, w Mat, drop *Dropout)
	// SparseMatMulTransA is dst [cols x m] = dropout(xs)ᵀ g, with xt the transpose
	// of xs.
	SparseMatMulTransA(dst Mat, xt *Transposed, g Mat, drop *Dropout)
}

// Gathers are the products with the adjacency matrix.
type Gathers interface {
	// SpMM is dst [e.Rows() x width] (+)= Σ over each row's edges of the scaled rows
	// of x [local ids from e.Base on x width]. x may be of BF16: then NewHalf made it
	// with HalfSlack.
	SpMM(dst Mat, e Edges, x Mat, add bool)
	// Narrow rounds x, each row times its scale, to dst, of BF16 and of the same
	// shape. No scale is 1.
	Narrow(dst, x Mat, scale Vector[float32])
}

// Attentions are the gathers of layers with attention. Formulae and shapes stand
// beside the methods of Team.
type Attentions interface {
	// AttentionGather starts or, with merge, continues a gather of x.
	AttentionGather(a Attention, dst, stats Mat, e Edges, x Emitted, r Mat, merge bool)
	// AttentionFinish divides dst by the sums in stats and sets lse.
	AttentionFinish(a Attention, dst, lse, stats Mat)
	// AttentionGradDst is dr (+)= the gradient of r along the edges e, and along (+)= what
	// they give the weights that scores are made of.
	AttentionGradDst(a Attention, dr, along Mat, e Edges, x Emitted, back Attended, add bool)
	// AttentionGradSrc is the gradient of emitted rows x along edges by source.
	AttentionGradSrc(a Attention, dst Mat, e Edges, first, own int, x Mat, back Attended)
	// PackScores takes the scores of emitted rows, which are those from first on of
	// dst.Rows, to their places in dst [· x Heads].
	PackScores(a Attention, dst Mat, first int, rows Mat)
	// PackGrad takes r, lse and dots [· x Heads] to theirs in dst [· x 3·Heads], and where
	// scores are dynamic lse and dots alone.
	PackGrad(a Attention, dst Mat, first int, r, lse, dots Mat)
	// RowDots is dst [n x heads] = the products of the heads of the rows of x and y.
	RowDots(dst, x, y Mat)
	// FoldScores is wide [in x heads·(width+1)] = w beside the products of each head
	// of w [in x heads·width] with that of source [heads x width], and narrow [in x
	// heads] = those with target.
	FoldScores(wide, narrow, w, source, target Mat)
	// FoldScoresGrad takes the gradients of wide and narrow apart into those of w,
	// source and target.
	FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target Mat)
}

// Rows has the operations on rows that partitions exchange.
type Rows interface {
	// PackRows sets row i of dst to row index[i] of x or, after its last, of more.
	PackRows(dst Mat, index Vector[uint32], x, more Mat)
	// AddRows adds row i of rows to row index[i] of dst or, after its last, of more.
	// Indices are distinct.
	AddRows(dst, more Mat, index Vector[uint32], rows Mat)
}

// Losses are what logits [n x classes] are for.
type Losses interface {
	// SoftmaxCrossEntropy is the summed loss of the rows with a label whose split is
	// want, and their number. grad, unless it is none, is its gradient times scale;
	// it may be logits.
	SoftmaxCrossEntropy(grad, logits Mat, labels Vector[int32], split Vector[uint8], want uint8, scale float32) (loss float64, count int64)
	// Accuracy counts rows with a label, and those that are predicted, by split.
	Accuracy(logits Mat, labels Vector[int32], split Vector[uint8]) (correct, total [splits]int64)
	// Argmax sets dst to the column of each row's largest element.
	Argmax(dst Vector[int32], x Mat)
	// Softmax is dst = softmax of the rows of x, which may be dst.
	Softmax(dst, x Mat)
}

// Norms are what normalisations are made of. Formulae stand beside the methods of Team.
type Norms interface {
	// ColumnMoments is dst [2·cols] = the sums of the columns of x and after them those
	// of its products with y, of the same shape, which may be x.
	ColumnMoments(dst Vector[float64], x, y Mat)
	// AffineColumns is dst [n x cols] = g·a + z·b + c, with a, b and c [1 x cols] of each
	// column. No z is without. dst may be g.
	AffineColumns(dst, g, a, z, b, c Mat)
	// LayerNorm is dst = the rows of z with mean 0 and variance 1, times gain [1 x cols]
	// plus bias [1 x cols]. eps is added to variances. dst may be z.
	LayerNorm(dst, z, gain, bias Mat, eps float32)
	// LayerNormGrad is dst, the gradient of z, and those of gain and bias, from g and w,
	// the gain. dst may be g.
	LayerNormGrad(dst, gain, bias, g, z, w Mat, eps float32)
	// UnitRows is dst = the rows of z, of the same shape, divided by their norms; with ball, by
	// those above 1. dst may be z.
	UnitRows(dst, z Mat, ball bool)
	// UnitRowsGrad is dst, the gradient of z, from that of the quotients, g. dst may be g.
	UnitRowsGrad(dst, g, z Mat, ball bool)
}

// Edges are a Gather where an Ops computes.
type Edges struct {
	Begin, End         Vector[int64]
	Cols               Vector[uint32]
	Weights            Vector[float32]
	Base               uint32
	RowScale, ColScale Vector[float32]
	SelfLoops          bool
	First              uint32
	Features, Self     Vector[float32]
	At                 Vector[int64]
	// ColumnMask are columns whose rows are not zeros: SpMM and AttentionGradSrc, which reads
	// rows of gradients and their dots, may leave out the others. It is for an Ops that is
	// Choosing, and Base is 0.
	ColumnMask VertexMask
	// RowMask are vertices, First that of row 0, whose rows somebody reads: AttentionGather may
	// leave out the edges of the others. It is for an Ops that is Choosing.
	RowMask VertexMask
}

// Rows is the number of rows.
func (e *Edges) Rows() int { return e.Begin.Len() }

// gather is e in this process's memory.
func (e *Edges) gather() Gather {
	return Gather{
		Begin: e.Begin.Host(), End: e.End.Host(), Cols: e.Cols.Host(), Weights: e.Weights.Host(), Base: e.Base,
		RowScale: e.RowScale.Host(), ColScale: e.ColScale.Host(), SelfLoops: e.SelfLoops, First: e.First,
		Features: e.Features.Host(), Self: e.Self.Host(), At: e.At.Host(),
	}
}

// Emitted are rows that vertices have emitted [n x Attention.Emitted()]. Scores are
// their l as PackScores lays them out, [n x Heads]; none: each call does it by
// itself, which costs more than its edges where they are a few rows of many.
type Emitted struct{ X, Scores Mat }

// Attended is what the backward pass knows of own vertices: R [own x Near()] and LSE [own
// x Heads] of the forward pass, the gradient of its output [own x Columns()], and the RowDots
// of that and the output [own x Heads]. Packed are R, LSE and Dots as PackGrad lays
// them out, [own x 3·Heads], for AttentionGradSrc; none: each call does it by
// itself.
type Attended struct{ R, LSE, Grad, Dots, Packed Mat }

// Sparse is a graph.SparseRows where an Ops computes, beside the one that it was
// made from, which stays on the host.
type Sparse struct {
	Offsets Vector[int64]
	Cols    Vector[uint32]
	Vals    Vector[float32]
	Source  graph.SparseRows
}

// PlaceSparse puts the non-zeros of rows where o computes.
func PlaceSparse(o Ops, a *mapped.Arena, rows graph.SparseRows) Sparse {
	return Sparse{Place(o, a, rows.Offsets), Place(o, a, rows.Cols), Place(o, a, rows.Vals), rows}
}

// Rows is the number of rows.
func (s *Sparse) Rows() int { return sparseRows(s.Source) }

// Part is the rows [lo, hi).
func (s Sparse) Part(lo, hi int) Sparse {
	s.Offsets, s.Source.Offsets = s.Offsets.Part(lo, hi+1), s.Source.Offsets[lo:hi+1]
	return s
}

// rows is s in this process's memory.
func (s *Sparse) rows() graph.SparseRows {
	return graph.SparseRows{Offsets: s.Offsets.Host(), Cols: s.Cols.Host(), Vals: s.Vals.Host()}
}
