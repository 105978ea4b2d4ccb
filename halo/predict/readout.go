package predict

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// terms is the number of rows of a readout: one for each column of Φ, and one for r.
const terms = columns + 1

// readout is the ridge regression of the change Y of sampled own rows, with the ages a:
//
//	argmin ‖Y - Ψ (R; r)‖² + λ ‖(R; r)‖²,  Ψ = a (Φ, 1)
//
// Sums over rows for Ψ'Ψ are in float64 in the order of rows. Ψ'Y is a product of package kernels, in
// an order that depends only on shapes. The equations are solved in float64.
type readout struct {
	design    []float32 // Ψ [sampled x terms]
	target    []float32 // Y [sampled x widest]
	predicted []float32 // [sampled x widest]
	product   []float32 // Ψ'Y [terms x widest]
	sums      []float64 // Ψ'Ψ, then Ψ'Y [terms x (terms + widest)]
}

func newReadout(rows, widest int, a *mapped.Arena) readout {
	floats := func(n int) []float32 { return mapped.Make[float32](a, n) }
	return readout{
		design: floats(rows * terms), target: floats(rows * widest), predicted: floats(rows * widest),
		product: floats(terms * widest), sums: mapped.Make[float64](a, terms*(terms+widest)),
	}
}

// errors are sums of squared errors of sampled rows.
type errors struct{ learned, heldOut float64 }

// observe sets Ψ from Φ, and Y to the change of own rows until an epoch. It returns the squares of Y.
func (r *recurrent) observe(n *network, epoch int) (stale errors) {
	r.assembling.n, r.assembling.epoch = n, epoch
	r.o.Team.Run(len(r.sampled), 64, r.bodies.design)
	learned := r.learned * n.Width
	return errors{square(r.readout.target[:learned]), square(r.readout.target[learned : len(r.sampled)*n.Width])}
}

func (r *recurrent) designRows(lo, hi int) {
	n, x := r.assembling.n, &r.readout
	for i := lo; i < hi; i++ {
		v := int(r.sampled[i])
		y := x.target[i*n.Width : (i+1)*n.Width]
		r.baseRow(n, y, v, r.assembling.epoch)
		for j, now := range n.now[v*n.Width : (v+1)*n.Width] {
			y[j] = now - y[j]
		}
		x.describe(i, r.age[v], n.features[v*columns:(v+1)*columns])
	}
}

// describe sets row i of Ψ.
func (x *readout) describe(i int, age float32, features []float32) {
	row := x.design[i*terms : (i+1)*terms]
	for j, f := range features {
		row[j] = age * f
	}
	row[columns] = age
}

// square returns the sum of squares. Four partial sums do not wait for one another.
func square(x []float32) float64 {
	var sums [4]float64
	for ; len(x) >= len(sums); x = x[len(sums):] {
		for i := range sums {
			sums[i] += float64(x[i]) * float64(x[i])
		}
	}
	for i, v := range x {
		sums[i] += float64(v) * float64(v)
	}
	return sums[0] + sums[1] + sums[2] + sums[3]
}

// gram sets sums to Ψ'Ψ of the rows to learn from: its lower triangle. It adds the products of four
// rows at once.
func (x *readout) gram(rows int) {
	const together = 4
	var wide [together][terms]float64
	clear(x.sums[:terms*terms])
	for i := 0; i < rows; i += together {
		for r := range together {
			clear(wide[r][:])
			if i+r < rows {
				for j, v := range x.design[(i+r)*terms : (i+r+1)*terms] {
					wide[r][j] = float64(v)
				}
			}
		}
		a, b, c, d := &wide[0], &wide[1], &wide[2], &wide[3]
		for j := range terms {
			sums := x.sums[j*terms : j*terms+j+1]
			for k := range sums {
				sums[k] += float64(a[j]*a[k]) + float64(b[j]*b[k]) + float64(c[j]*c[k]) + float64(d[j]*d[k])
			}
		}
	}
}

// cross sets sums to Ψ'Y of the rows to learn from.
func (x *readout) cross(t *kernels.Team, rows, d int) {
	t.MatMulTransA(kernels.HostMat(terms, d, x.product), kernels.HostMat(rows, terms, x.design), kernels.HostMat(rows, d, x.target), false)
	for i, v := range x.product[:terms*d] {
		x.sums[terms*terms+i] = float64(v)
	}
}

// factorise sets factor to the Cholesky factor of the sum of Ψ'Ψ, plus λ.
func (x *readout) factorise(factor []float64) Fallback {
	return factorise(factor, terms, func(i, j int) float64 { return x.sums[i*terms+j] })
}

// solve sets dst [terms x d] to (R; r), from the sum of Ψ'Y, which it overwrites.
func (x *readout) solve(dst []float32, factor []float64, d int) Fallback {
	y := x.sums[terms*terms : terms*(terms+d)]
	solve(y, factor, terms)
	for i, v := range y {
		dst[i] = float32(v)
	}
	if !finite(dst[:terms*d]) {
		return NotFinite
	}
	return none
}

// errors returns the errors of sampled rows from a row on, predicted by a readout times a factor. It
// sets predicted.
func (r *recurrent) errors(n *network, readout []float32, by float32, first int) (e errors) {
	x, d, rows := &r.readout, n.Width, len(r.sampled)
	predicted := kernels.HostMat(rows, d, x.predicted).Part(first, rows)
	r.o.Team.MatMul(predicted, kernels.HostMat(rows, terms, x.design).Part(first, rows), kernels.HostMat(terms, d, readout), false)
	for i := first; i < rows; i++ {
		sum := 0.0
		for j, y := range x.target[i*d : (i+1)*d] {
			by := float64(by*x.predicted[i*d+j]) - float64(y)
			sum += float64(by * by)
		}
		if i < r.learned {
			e.learned += sum
		} else {
			e.heldOut += sum
		}
	}
	return e
}

// fitFresh fits the readout to the change of this part's own rows until an epoch. It reports whether
// held-out rows are predicted better than the stale ones. The Gram matrix depends only on the last
// step if all rows are of one age: its factor then serves all epochs until the next step.
func (r *recurrent) fitFresh(n *network, epoch int) (Fallback, bool) {
	x := &r.readout
	if len(r.sampled) < 2*n.Width {
		return FewRows, false
	}
	stale := r.observe(n, epoch)
	if stale.learned == 0 {
		return none, false
	}
	if !isFinite(float32(stale.learned + stale.heldOut)) {
		return NotFinite, false
	}
	if !r.uniform || n.factored != n.counts[stepCount] {
		x.gram(r.learned)
		if n.factored = 0; x.factorise(n.factor) != none {
			return Singular, false
		}
		if r.uniform {
			n.factored = n.counts[stepCount]
		}
	}
	x.cross(r.o.Team, r.learned, n.Width)
	if reason := x.solve(n.readout, n.factor, n.Width); reason != none {
		return reason, false
	}
	// Not <, so that NaN falls back.
	if !(r.errors(n, n.readout, 1, r.learned).heldOut < stale.heldOut) {
		return NotBetter, false
	}
	return none, true
}

// applied is the number of rows of which apply computes products at once.
const applied = 1024

// apply sets dst to ghost rows plus their predicted changes.
func (r *recurrent) apply(n *network, dst, ghosts kernels.Mat) {
	own, count, d, t := r.graph.own, r.graph.rows-r.graph.own, n.Width, r.o.Team
	features, scaled := kernels.HostMat(r.graph.rows, columns, n.features), r.readout.product[:terms*d]
	copy(scaled, n.readout)
	if !r.o.Fresh {
		kernels.ScaleRow(scaled, n.scales[gain]*n.scales[changeScale])
	}
	matrix, shift := kernels.HostMat(columns, d, scaled), kernels.HostMat(1, d, scaled[columns*d:])
	r.applying.dst, r.applying.ghosts = dst, ghosts
	for lo := 0; lo < count; lo += applied {
		hi := min(lo+applied, count)
		t.MatMulBiasReLUDropout(dst.Part(lo, hi), features.Part(own+lo, own+hi), matrix, shift, false, nil)
		r.applying.first = lo
		t.Run(hi-lo, 64, r.bodies.apply)
	}
}

// applyRows adds the changes of rows, times their ages, to the rows.
func (r *recurrent) applyRows(lo, hi int) {
	w, dst, ghosts := r.applying.dst.Cols, r.applying.dst.Host(), r.applying.ghosts.Host()
	for i := r.applying.first + lo; i < r.applying.first+hi; i++ {
		row, age := dst[i*w:(i+1)*w], r.age[r.graph.own+i]
		if age != 1 {
			kernels.ScaleRow(row, age)
		}
		kernels.AddRow(row, ghosts[i*w:(i+1)*w])
	}
}
