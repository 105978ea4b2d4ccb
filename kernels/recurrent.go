package kernels

import "siafu/kernels/internal/avx"

// Recurrent cells, and their gradients. z [n x 4k] has the gates' inputs, linear in the inputs of
// the cell and in h; σ is the logistic function, and all products are elementwise.
//
//	lstm  i, f, g, o = σ(z₀), σ(z₁), tanh(z₂), σ(z₃)
//	      c' = f c + i g;  h' = o tanh(c')
//	gru   u, r, n = σ(z₀), σ(z₁), tanh(z₂ + r z₃)
//	      h' = (1-u) n + u h
//
// lstm is Hochreiter and Schmidhuber ("Long short-term memory", Neural Computation 9(8), 1997)
// with forget gates. gru is Cho et al. (EMNLP'14), which resets after the product with h, as cuDNN
// and PyTorch do: a graph convolution of h then needs no second gather.
//
// Variant: one pass over z and the state. The gates replace z, and their derivatives follow from their
// values, so that backward computes no exponential function except that of tanh(c'). σ and tanh have an
// absolute error of 2e-7.

// Cell is a recurrent cell with a state of k numbers, or several times k.
type Cell interface {
	// States returns the number of vectors of k in a state; the first is the output h.
	States() int
	// Step sets next [n x States·k] to the state after state, with the gates' inputs z [n x 4k],
	// which it replaces by the gates. next must not overlap state.
	Step(t *Team, next, z, state Mat)
	// StepGrad sets dz and dstate to the gradients of z and state from dnext, that of the next
	// state. gates is the result of Step in z. dstate excludes the gradient of h through z. dz may
	// be gates, and dstate may be dnext.
	StepGrad(t *Team, dz, dstate, dnext, gates, state Mat)
}

// Gates is the number of vectors of k in the input z of a Cell.
const Gates = 4

// LSTM and GRU are the cells.
var (
	LSTM Cell = lstm{}
	GRU  Cell = gru{}
)

type (
	lstm struct{}
	gru  struct{}
)

// States implements Cell.
func (lstm) States() int { return 2 }

// States implements Cell.
func (gru) States() int { return 1 }

// Step implements Cell.
func (lstm) Step(t *Team, next, z, state Mat) { runCell(t, 2, cellTask{row: lstmRow}, next, z, state) }

// Step implements Cell.
func (gru) Step(t *Team, next, z, state Mat) { runCell(t, 1, cellTask{row: gruRow}, next, z, state) }

// StepGrad implements Cell.
func (lstm) StepGrad(t *Team, dz, dstate, dnext, gates, state Mat) {
	mustFit(isSameShape(dz, gates) && isSameShape(dstate, dnext))
	runCell(t, 2, cellTask{grad: lstmGrad, dz: dz.Host(), dstate: dstate.Host()}, dnext, gates, state)
}

// StepGrad implements Cell.
func (gru) StepGrad(t *Team, dz, dstate, dnext, gates, state Mat) {
	mustFit(isSameShape(dz, gates) && isSameShape(dstate, dnext))
	runCell(t, 1, cellTask{grad: gruGrad, dz: dz.Host(), dstate: dstate.Host()}, dnext, gates, state)
}

// cellTask is a step, or with grad its gradient, where next is the gradient of the next state.
type cellTask struct {
	next, z, state, dz, dstate []float32
	k, states                  int
	row                        func(set avx.Set, next, z, state []float32)
	grad                       func(set avx.Set, dz, dstate, dnext, z, state []float32)
	set                        avx.Set
}

func runCell(t *Team, states int, c cellTask, next, z, state Mat) {
	mustFit(isSameShape(next, state) && next.Rows == z.Rows && z.Cols*states == next.Cols*Gates)
	c.next, c.z, c.state, c.k, c.states, c.set = next.Host(), z.Host(), state.Host(), z.Cols/Gates, states, t.set
	do(t, c, z.Rows, rowGrain(z.Cols))
}

func (c *cellTask) chunk(lo, hi int) {
	w, s := Gates*c.k, c.states*c.k
	for r := lo; r < hi; r++ {
		next, z, state := rowOf(c.next, r, s), rowOf(c.z, r, w), rowOf(c.state, r, s)
		if c.grad == nil {
			c.row(c.set, next, z, state)
		} else {
			c.grad(c.set, rowOf(c.dz, r, w), rowOf(c.dstate, r, s), next, z, state)
		}
	}
}

// block is the number of elements of a gate that are computed at once.
const block = 64

func lstmRow(set avx.Set, next, z, state []float32) {
	k := len(state) / 2
	sigmoids(set, z[:2*k])
	tanhs(set, z[2*k:3*k], z[2*k:3*k])
	sigmoids(set, z[3*k:])
	for j := range k {
		next[k+j] = float32(z[k+j]*state[k+j]) + float32(z[j]*z[2*k+j])
	}
	tanhs(set, next[:k], next[k:])
	for j := range k {
		next[j] *= z[3*k+j]
	}
}

func lstmGrad(set avx.Set, dz, dstate, dnext, gates, state []float32) {
	var outs [block]float32
	k := len(state) / 2
	for lo := 0; lo < k; lo += block {
		out := outs[:min(block, k-lo)]
		for n := range out {
			j := lo + n
			out[n] = float32(gates[k+j]*state[k+j]) + float32(gates[j]*gates[2*k+j])
		}
		tanhs(set, out, out)
		for n, out := range out {
			j := lo + n
			i, f, g, o, c := gates[j], gates[k+j], gates[2*k+j], gates[3*k+j], state[k+j]
			dh := dnext[j]
			dc := dnext[k+j] + float32(dh*o*(1-float32(out*out)))
			dz[j], dz[k+j] = dc*g*i*(1-i), dc*c*f*(1-f)
			dz[2*k+j], dz[3*k+j] = dc*i*(1-float32(g*g)), dh*out*o*(1-o)
			dstate[j], dstate[k+j] = 0, dc*f
		}
	}
}

func gruRow(set avx.Set, next, z, state []float32) {
	k := len(state)
	sigmoids(set, z[:2*k])
	for j := range k {
		z[2*k+j] += float32(z[k+j] * z[3*k+j])
	}
	tanhs(set, z[2*k:3*k], z[2*k:3*k])
	for j, h := range state {
		u := z[j]
		next[j] = float32((1-u)*z[2*k+j]) + float32(u*h)
	}
}

func gruGrad(_ avx.Set, dz, dstate, dnext, gates, state []float32) {
	k := len(state)
	for j, h := range state {
		u, r, n, z := gates[j], gates[k+j], gates[2*k+j], gates[3*k+j]
		dh := dnext[j]
		dn := dh * (1 - u) * (1 - float32(n*n))
		dz[j], dz[k+j] = dh*(h-n)*u*(1-u), dn*z*r*(1-r)
		dz[2*k+j], dz[3*k+j] = dn, dn*r
		dstate[j] = dh * u
	}
}

// sigmoids replaces x by σ(x) = (1 + tanh(x/2))/2.
func sigmoids(set avx.Set, x []float32) {
	if set != avx.None {
		set.Tanh(x, x, 0.5, 0.5, 0.5)
		return
	}
	tanhRow(x, x, 0.5, 0.5, 0.5)
}

// tanhs sets dst to tanh(x).
func tanhs(set avx.Set, dst, x []float32) {
	if set != avx.None {
		set.Tanh(dst, x, 1, 1, 0)
		return
	}
	tanhRow(dst, x, 1, 1, 0)
}
