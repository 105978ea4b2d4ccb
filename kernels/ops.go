package kernels

import (
	"unsafe"

	"siafu/graph"
	"siafu/internal/mapped"
)

// Ops is the arithmetic of training on matrices in its memory. Layers, gathers, the loss,
// optimisers and the packing of rows for other ranks use only an Ops. A Team is the Ops of
// this machine's processors. An Ops of a device may embed Generic for kernels that it lacks.
// Sub-package kerneltest is the conformance suite.
//
// An Ops serves one caller at a time. A rank has many: one per worker, and a Fork per interval
// of vertices, which borrows the workspace of the worker that runs it. All use the same
// memory.
//
// Shapes that do not fit panic. A method may return before its work is done (a kernel on a
// stream), but every later call, on any Ops of the rank, sees its result. Download and methods
// that return numbers wait. Host memory passed to a method may change as soon as it returns. A
// dst must not overlap an operand unless the method allows it. The order of sums depends only
// on shapes: the same call gives the same bits.
//
// A Dropout is a function of counters (seed, epoch, layer, id, column), so that every Ops
// computes the same masks, and none stores one.
type Ops interface {
	Memory
	Wire
	Products
	Features
	Gathers
	Attentions
	Rows
	Losses
	Norms

	// Fork returns another Ops of one worker with the same arithmetic and memory.
	Fork() Ops
	// Borrow makes this Ops use the workspace of owner, which is of the same kind and size,
	// from now on. Only one of the Ops that share a workspace may run at a time.
	Borrow(owner Ops)
	// Intervals returns the best number of intervals for the vertices of a rank, given the
	// number whose rows fit into a processor's cache.
	Intervals(cached int) int
	// Kernel returns the name of the arithmetic.
	Kernel() string
	// Has reports whether this Ops has its own kernels for all of f.
	Has(f Feature) bool
	// Close ends an Ops that is idle; a second Close does nothing.
	Close()
}

// Feature is a set of kernels that an Ops may lack. Callers then choose other ones.
type Feature uint8

const (
	FusedInputGrad  Feature = 1 << iota // GradThrough
	ListedRows                          // List, SpMMLists
	SignedAttention                     // AttentionGradSigned, and signed sums
	RowCoding                           // EncodeRows, DecodeRows; package halo/codec works on the host
)

// Includes reports whether f has all of the features.
func (f Feature) Includes(all Feature) bool { return f&all == all }

// Memory is the memory of an Ops. NewMat, NewVector and Place allocate it; Read and Write copy
// between it and host memory.
type Memory interface {
	// Remote reports whether the memory is on a device, so that Go code cannot read it.
	Remote() bool
	// Alloc returns zero bytes, aligned to 64 bytes, that are valid until a is freed. It panics
	// like mapped.Make if there is not enough memory.
	Alloc(a *mapped.Arena, bytes int) unsafe.Pointer
	// Upload sets memory from Alloc, or a part of it, to src.
	Upload(dst unsafe.Pointer, src []byte)
	// Download sets dst to a part of memory from Alloc.
	Download(dst []byte, src unsafe.Pointer)
	// Copy sets dst to src, of the same shape, and Clear to zeros.
	Copy(dst, src Mat)
	Clear(dst Mat)
}

// Products are the products of layers, their epilogues, and the gradients of both. Sums are
// float32 also if a is BF16.
type Products interface {
	// MatMul computes dst [m x n] (+)= a [m x k] b [k x n]; a may be of BF16.
	MatMul(dst, a, b Mat, add bool)
	// MatMulTransA computes dst [m x n] (+)= a [k x m]ᵀ b [k x n]; a may be of BF16.
	MatMulTransA(dst, a, b Mat, add bool)
	// MatMulTransB computes dst [m x n] (+)= a [m x k] b [n x k]ᵀ.
	MatMulTransB(dst, a, b Mat, add bool)
	// MatMulBiasReLUDropout computes dst [m x n] = dropout(relu(a [m x k] b [k x n] +
	// bias)); a may be of BF16.
	MatMulBiasReLUDropout(dst, a, b, bias Mat, relu bool, drop *Dropout)
	// BiasReLUDropout computes dst [n x cols] = dropout(relu(z + bias)). dst may be z. bias may be
	// absent.
	BiasReLUDropout(dst, z, bias Mat, relu bool, drop *Dropout)
	// BiasReLUDropoutGrad computes dst [n x cols], the gradient of z, from g, the gradient of
	// the output h. It sets bias [1 x cols] to the column sums of dst, unless bias is absent.
	// dst may be g.
	BiasReLUDropoutGrad(dst, bias, g, h Mat, relu bool, drop *Dropout)
	// BiasELUDropout and BiasELUDropoutGrad are the same with an ELU.
	BiasELUDropout(dst, z, bias Mat, drop *Dropout)
	BiasELUDropoutGrad(dst, bias, g, h Mat, drop *Dropout)
	// ColumnSums computes dst [1 x cols] (+)= the sums of the columns of g.
	ColumnSums(dst, g Mat, add bool)
	// Add computes dst += x, of the same shape.
	Add(dst, x Mat)
	// Blend computes dst = keep·dst + share·x, of the same shape. With keep 0 it does not read dst.
	// x may be dst.
	Blend(dst Mat, keep float32, x Mat, share float32)
	// Activate computes dst = f(z), of the same shape. dst may be z. ActivateGrad computes dst =
	// g·f'(z). dst may be g or z.
	Activate(dst, z Mat, f Activation)
	ActivateGrad(dst, g, z Mat, f Activation)
	// PReLU computes dst = z > 0 ? z : slope·z, with slope [1 x 1]. PReLUGrad computes dst, the
	// gradient of z, and the gradient of the slope, from g and w, the slope. dst may be z or g.
	PReLU(dst, z, slope Mat)
	PReLUGrad(dst, slope, g, z, w Mat)
	// Larger computes dst = max(dst, x), of the same shape. LargerGrad computes dst (+)= g where x
	// is m, the maximum, and clears g there.
	Larger(dst, x Mat)
	LargerGrad(dst, g, x, m Mat, add bool)
	// MeanHeads sets dst [n x width] to the mean of the heads of x [n x heads·width], plus bias [1 x
	// width]. MeanHeadsGrad sets dst to the gradient of x from g.
	MeanHeads(dst Mat, heads int, x, bias Mat)
	MeanHeadsGrad(dst Mat, heads int, g Mat)
	// GradThrough replaces h [n x m], the output of the preceding layer, by the gradient of
	// its activation's input. The gradient of h is a bᵀ + a2 b2ᵀ, a [n x k] and b [m x k]; a2
	// and b2 may be none. drop is the dropout of h.
	GradThrough(h, a, b, a2, b2 Mat, drop *Dropout)
	// Step makes a step of o, counted from 1, of a parameter w with its gradient and o's state of it,
	// all of one shape.
	Step(o Optimizer, step int, w, grad Mat, state []Mat, decay bool)
}

// Features are the operations on the input of a network.
type Features interface {
	// DropoutRows computes dst = dropout(x), of the same shape. In this process's memory x may be
	// BF16, here and in CopyColumns.
	DropoutRows(dst, x Mat, drop *Dropout)
	// CopyColumns computes dst [n x w] = columns [from, from+w) of x.
	CopyColumns(dst, x Mat, from int)
	// PutColumns sets columns [from, from+w) of dst, which may be BF16, to x [n x w].
	PutColumns(dst Mat, from int, x Mat)
	// SpreadColumns copies columns of a sparse matrix like CopyColumns.
	SpreadColumns(dst Mat, from int, xs Sparse)
	// SparseToDense computes dst [n x cols] = dropout(xs), zeros included.
	SparseToDense(dst Mat, xs Sparse, drop *Dropout)
	// SparseMatMul computes dst [n x m] = dropout(xs) w.
	SparseMatMul(dst Mat, xs Sparse, w Mat, drop *Dropout)
	// SparseMatMulTransA computes dst [cols x m] = dropout(xs)ᵀ g, with xt the transpose
	// of xs.
	SparseMatMulTransA(dst Mat, xt *Transposed, g Mat, drop *Dropout)
	// List sets the rows of l from lo on to the rows of xs, part of the matrix for which l was made,
	// with dropout of their non-zeros.
	List(l Lists, lo int, xs Sparse, drop *Dropout)
}

// Gathers are the products with the adjacency matrix.
type Gathers interface {
	// SpMM computes dst [e.Rows() x width] (+)= Σ over each row's edges of the scaled rows of x
	// [local ids from e.Base on x width]. x may be of BF16, from NewHalf with HalfSlack.
	SpMM(dst Mat, e Edges, x Mat, add bool)
	// Narrow rounds x, each row times its scale, to dst, which is BF16 of the same shape. Without
	// scales the factor is 1.
	Narrow(dst, x Mat, scale Vector[float32])
	// SpMMLists computes SpMM with the rows of l, along edges without weights.
	SpMMLists(dst Mat, e Edges, l Lists, add bool)
	// Packs reports whether packing rows of this width may save time.
	Packs(width int) bool
	// Pack packs x as the rows of p from lo on, and returns the number of packed values. x may be
	// these rows of p; Pack then overwrites x.
	Pack(p Packed, lo int, x Mat) (kept int)
	// SpMMPacked computes SpMM with the packed rows of p, which have about kept values in total. It
	// gives the same bits if no scale is negative.
	SpMMPacked(dst Mat, e Edges, p Packed, kept int64, add bool)
	// MaxGather starts a gather of the maxima of x along e or, with merge, completes it; dst
	// and arg then have the maxima and their sources: local ids, stored as uint32. Without
	// arg, sources are not recorded. ids maps local ids to dataset ids. e must have no scales,
	// weights or self loops. dst must not overlap x.
	MaxGather(dst, arg Mat, e Edges, x Mat, ids Vector[uint32], merge bool)
	// MaxGatherGrad sets dst to the gradient of the rows from local id first on, along edges
	// by source. dst must not overlap g.
	MaxGatherGrad(dst Mat, e Edges, arg, g Mat, first int)
}

// Attentions are the gathers of layers with attention. Formulae and shapes are documented at
// the methods of Team.
type Attentions interface {
	// AttentionGather starts or, with merge, continues a gather of x. signed [e.Rows() x
	// Emitted()], unless it is none, gets the sums for AttentionGradSigned.
	AttentionGather(a Attention, dst, signed, stats Mat, e Edges, x Emitted, r Mat, merge bool)
	// AttentionFinish divides dst and signed by the sums in stats and sets lse.
	AttentionFinish(a Attention, dst, signed, lse, stats Mat)
	// AttentionGradSigned sets dr [n x Heads], the gradient of r, given grad, the gradient of
	// the output [n x Columns()], and its dots [n x Heads].
	AttentionGradSigned(a Attention, dr, signed, grad, dots Mat)
	// AttentionGradDst computes dr (+)= the gradient of r along the edges e, and along (+)= the
	// gradients of the scores' weights (Vector and Edge) along the edges e.
	AttentionGradDst(a Attention, dr, along Mat, e Edges, x Emitted, back Attended, add bool)
	// AttentionGradSrc sets dst to the gradient of emitted rows x along edges by source.
	AttentionGradSrc(a Attention, dst Mat, e Edges, first, own int, x Mat, back Attended)
	// PackScores copies the scores of emitted rows to dst [· x Heads], from row first on.
	PackScores(a Attention, dst Mat, first int, rows Mat)
	// PackGrad copies r, lse and dots [· x Heads] to dst [· x 3·Heads], with dynamic scores only lse
	// and dots.
	PackGrad(a Attention, dst Mat, first int, r, lse, dots Mat)
	// RowDots sets dst [n x heads] to the products of the heads of the rows of x and y.
	RowDots(dst, x, y Mat)
	// FoldScores sets wide [in x heads·(width+1)] to w [in x heads·width] followed by the products of
	// its heads with source [heads x width], and narrow [in x heads] to the products with target.
	FoldScores(wide, narrow, w, source, target Mat)
	// FoldScoresGrad computes the gradients of w, source and target from the gradients of wide
	// and narrow.
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

// Losses are the operations on logits [n x classes].
type Losses interface {
	// SoftmaxCrossEntropy returns the summed loss of the rows with a label whose split is want, and
	// their number. It sets grad, unless that is none, to the gradient times scale. grad may be
	// logits.
	SoftmaxCrossEntropy(grad, logits Mat, labels Vector[int32], split Vector[uint8], want uint8, scale float32) (loss float64, count int64)
	// Accuracy counts labelled rows, and correctly predicted ones, by split.
	Accuracy(logits Mat, labels Vector[int32], split Vector[uint8]) (correct, total [splits]int64)
	// Argmax sets dst to the column of each row's largest element.
	Argmax(dst Vector[int32], x Mat)
	// Softmax sets dst to the softmax of the rows of x, which may be dst.
	Softmax(dst, x Mat)
}

// Norms are the operations of normalisations. Formulae are documented at the methods of Team.
type Norms interface {
	// ColumnMoments sets dst [2·cols] to the column sums of x, followed by the column sums of
	// x·y elementwise. y has the shape of x and may be x.
	ColumnMoments(dst Vector[float64], x, y Mat)
	// AffineColumns computes dst [n x cols] = g·a + z·b + c, with a, b and c [1 x cols] of each
	// column. Without z, its term is omitted. dst may be g.
	AffineColumns(dst, g, a, z, b, c Mat)
	// LayerNorm sets dst to the rows of z with mean 0 and variance 1, times gain [1 x cols] plus
	// bias [1 x cols]. eps is added to variances. dst may be z.
	LayerNorm(dst, z, gain, bias Mat, eps float32)
	// LayerNormGrad sets dst to the gradient of z, and gain and bias to their gradients, from
	// g and the gain w. dst may be g.
	LayerNormGrad(dst, gain, bias, g, z, w Mat, eps float32)
	// UnitRows sets dst to the rows of z, of the same shape, divided by their norms; with ball only
	// those with norm above 1. dst may be z.
	UnitRows(dst, z Mat, ball bool)
	// UnitRowsGrad sets dst to the gradient of z, from the gradient g of the result. dst may
	// be g.
	UnitRowsGrad(dst, g, z Mat, ball bool)
}

// Edges are a Gather in the memory of an Ops.
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
	// ColumnMask selects columns. The rows of other columns, or their gradients and dots, must
	// be zeros, and SpMM and AttentionGradSrc may skip them. Base must be 0.
	ColumnMask VertexMask
	// EdgeMask has the bits of ColumnMask for all Cols; nil: each edge looks its bit up. It must be nil with Coded.
	EdgeMask EdgeMask
	// RowMask selects the vertices, First being row 0's, whose rows are read: SpMM and
	// AttentionGather may skip the edges into others, except self loops.
	RowMask VertexMask
	// Whole is the number of columns of the rows of which x is a slice, 0 if x has all of them. Sums
	// are then the bits of a gather of all columns.
	Whole int
	// Coded and CodedFirst are those of a Gather, for SpMM, SpMMPacked and SpMMLists of a Team.
	Coded      *CodedColumns
	CodedFirst int
}

// Rows returns the number of rows.
func (e *Edges) Rows() int { return e.Begin.Len() }

// gather returns e in this process's memory.
func (e *Edges) gather() Gather {
	return Gather{
		Begin: e.Begin.Host(), End: e.End.Host(), Cols: e.Cols.Host(), Weights: e.Weights.Host(), Base: e.Base,
		RowScale: e.RowScale.Host(), ColScale: e.ColScale.Host(), SelfLoops: e.SelfLoops, First: e.First,
		Features: e.Features.Host(), Self: e.Self.Host(), At: e.At.Host(),
		Coded: e.Coded, CodedFirst: e.CodedFirst,
	}
}

// Emitted has emitted rows of vertices [n x Attention.Emitted()]. Scores is their l in the
// format of PackScores [n x Heads]; none: each call packs it, which costs more than the edges
// of a few rows.
type Emitted struct{ X, Scores Mat }

// Attended is the input of the backward pass on own vertices.
type Attended struct {
	R      Mat // of the forward pass [own x ScoreWidth()]
	LSE    Mat // of the forward pass [own x Heads]
	Grad   Mat // gradient of the output [own x Columns()]
	Dots   Mat // RowDots of Grad and the output [own x Heads]
	Packed Mat // R, LSE and Dots in the format of PackGrad [own x 3·Heads], for AttentionGradSrc; empty: each call packs them
}

// Sparse is a graph.SparseRows in the memory of an Ops, with its source, which stays on the
// host.
type Sparse struct {
	Offsets Vector[int64]
	Cols    Vector[uint32]
	Vals    Vector[float32]
	Source  graph.SparseRows
}

// PlaceSparse copies the non-zeros of rows to the memory of o.
func PlaceSparse(o Ops, a *mapped.Arena, rows graph.SparseRows) Sparse {
	return Sparse{Place(o, a, rows.Offsets), Place(o, a, rows.Cols), Place(o, a, rows.Vals), rows}
}

// Rows returns the number of rows.
func (s *Sparse) Rows() int { return sparseRows(s.Source) }

// Part returns the rows [lo, hi).
func (s Sparse) Part(lo, hi int) Sparse {
	s.Offsets, s.Source.Offsets = s.Offsets.Part(lo, hi+1), s.Source.Offsets[lo:hi+1]
	return s
}

// rows returns s in this process's memory.
func (s *Sparse) rows() graph.SparseRows {
	return graph.SparseRows{Offsets: s.Offsets.Host(), Cols: s.Cols.Host(), Vals: s.Vals.Host()}
}
