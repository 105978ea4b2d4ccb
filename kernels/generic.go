package kernels

import (
	"siafu/internal/mapped"
)

// Generic contains the methods that an Ops of a device may lack. An Ops embeds it and overrides
// the methods for which it has kernels. If a Generic method cannot use other methods of the Ops,
// it copies operands to the host and computes with a Team. The bits equal a Team's.
type Generic struct {
	ops  Ops
	team *Team
	back []func() // copy results to the memory of ops
}

// NewGeneric returns the methods for o.
func NewGeneric(o Ops) Generic { return Generic{ops: o} }

// Copier implements Ops with copies that wait.
func (g *Generic) Copier(*mapped.Arena) Copier { return SyncCopier(g.ops) }

// EncodeRows and DecodeRows panic, as a Team's.
func (g *Generic) EncodeRows(Vector[uint8], int, Outgoing) { panic(noCoding) }
func (g *Generic) DecodeRows(Incoming, int, Vector[uint8]) { panic(noCoding) }

// GradThrough implements Ops with the separate gradients.
func (g *Generic) GradThrough(h, a, b, a2, b2 Mat, drop *Dropout) {
	arena := mapped.NewArena()
	defer arena.Free()
	sum := NewMat(g.ops, arena, h.Rows, h.Cols)
	g.ops.MatMulTransB(sum, a, b, false)
	if !a2.IsNil() {
		g.ops.MatMulTransB(sum, a2, b2, true)
	}
	g.ops.BiasReLUDropoutGrad(sum, Mat{}, sum, h, true, drop)
	g.ops.Copy(h, sum)
}

// Packs implements Ops: packed rows are dense.
func (g *Generic) Packs(int) bool { return false }

// Pack implements Ops.
func (g *Generic) Pack(p Packed, lo int, x Mat) (kept int) {
	if dst := p.rows.Part(lo, lo+x.Rows); dst != x {
		g.ops.Copy(dst, x)
	}
	return x.Rows * x.Cols
}

// SpMMPacked implements Ops.
func (g *Generic) SpMMPacked(dst Mat, e Edges, p Packed, _ int64, add bool) {
	g.ops.SpMM(dst, e, p.rows, add)
}

// List implements Ops on the host, where lists are.
func (g *Generic) List(l Lists, lo int, xs Sparse, drop *Dropout) {
	g.host().List(l, lo, PlaceSparse(g.team, nil, xs.Source), g.dropout(drop))
}

// SpMMLists implements Ops on the host.
func (g *Generic) SpMMLists(dst Mat, e Edges, l Lists, add bool) {
	defer g.done()
	g.host().SpMMLists(g.out(dst), g.edges(e), l, add)
}

// MaxGather implements Ops on the host.
func (g *Generic) MaxGather(dst, arg Mat, e Edges, x Mat, ids Vector[uint32], merge bool) {
	defer g.done()
	g.host().MaxGather(g.out(dst), g.out(arg), g.edges(e), g.in(x), fetched(g, ids), merge)
}

// MaxGatherGrad implements Ops on the host.
func (g *Generic) MaxGatherGrad(dst Mat, e Edges, arg, grad Mat, first int) {
	defer g.done()
	g.host().MaxGatherGrad(g.out(dst), g.edges(e), g.in(arg), g.in(grad), first)
}

// AttentionGather implements Ops on the host.
func (g *Generic) AttentionGather(a Attention, dst, signed, stats Mat, e Edges, x Emitted, r Mat, merge bool) {
	defer g.done()
	x = Emitted{X: g.in(x.X), Scores: g.in(x.Scores)}
	g.host().AttentionGather(g.attention(a), g.out(dst), g.out(signed), g.out(stats), g.edges(e), x, g.in(r), merge)
}

// AttentionFinish implements Ops on the host.
func (g *Generic) AttentionFinish(a Attention, dst, signed, lse, stats Mat) {
	defer g.done()
	g.host().AttentionFinish(g.attention(a), g.out(dst), g.out(signed), g.out(lse), g.out(stats))
}

// AttentionGradSigned implements Ops on the host.
func (g *Generic) AttentionGradSigned(a Attention, dr, signed, grad, dots Mat) {
	defer g.done()
	g.host().AttentionGradSigned(g.attention(a), g.out(dr), g.in(signed), g.in(grad), g.in(dots))
}

// host returns the Team of these methods.
func (g *Generic) host() *Team {
	if g.team == nil {
		g.team = NewTeam(1)
	}
	return g.team
}

// in returns an operand in host memory.
func (g *Generic) in(m Mat) Mat {
	if !m.Remote() || m.IsNil() {
		return m
	}
	here := m.AsHost()
	here.at = start(make([]byte, m.Bytes()), m.Bytes())
	CopyAcross(g.ops, here, m)
	return here
}

// out prepares an operand like in; done copies it back.
func (g *Generic) out(m Mat) Mat {
	here := g.in(m)
	if m.Remote() {
		g.back = append(g.back, func() { CopyAcross(g.ops, m, here) })
	}
	return here
}

// done ends a call.
func (g *Generic) done() {
	for _, back := range g.back {
		back()
	}
	clear(g.back)
	g.back = g.back[:0]
}

// fetched prepares a vector like in.
func fetched[T mapped.Elem](g *Generic, v Vector[T]) Vector[T] {
	return HostVector(FetchVector(g.ops, v))
}

func (g *Generic) edges(e Edges) Edges {
	e.Begin, e.End, e.Cols = fetched(g, e.Begin), fetched(g, e.End), fetched(g, e.Cols)
	e.Weights, e.RowScale, e.ColScale = fetched(g, e.Weights), fetched(g, e.RowScale), fetched(g, e.ColScale)
	e.Features, e.Self, e.At = fetched(g, e.Features), fetched(g, e.Self), fetched(g, e.At)
	return e
}

func (g *Generic) dropout(d *Dropout) *Dropout {
	if d == nil {
		return nil
	}
	here := *d
	here.IDs = fetched(g, d.IDs)
	return &here
}

func (g *Generic) attention(a Attention) Attention {
	a.Drop, a.Vector, a.Edge = g.dropout(a.Drop), g.in(a.Vector), g.in(a.Edge)
	return a
}
