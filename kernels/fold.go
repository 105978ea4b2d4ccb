package kernels

// The scores of attention as columns of a layer's weights. Since l = Z a_source
// is H (W a_source), one product with
//
//	wide[i]   = [ W[i], W[i,h]·source[h] for each head h ]
//	narrow[i] = [ W[i,h]·target[h] for each head h ]
//
// gives the whole row that a vertex emits, and
//
//	∂W[i,h] = ∂wide[i,h] + ∂wide[i,columns+h]·source[h] + ∂narrow[i,h]·target[h]
//	∂source[h] = Σ_i ∂wide[i,columns+h]·W[i,h]    ∂target[h] = Σ_i ∂narrow[i,h]·W[i,h]
//
// Variant: serial, because weights are small compared with activations.

// FoldScores implements Ops.
func (t *Team) FoldScores(wide, narrow, w, source, target Mat) {
	mustFit(wide.Rows == w.Rows && narrow.Rows == w.Rows && narrow.Cols == source.Rows && wide.Cols == w.Cols+narrow.Cols)
	mustFit(isSameShape(source, target) && source.Rows*source.Cols == w.Cols)
	heads, width, columns := source.Rows, source.Cols, w.Cols
	for i := range w.Rows {
		row, to := rowOf(w.Host(), i, columns), rowOf(wide.Host(), i, columns+heads)
		copy(to, row)
		for h := range heads {
			part := rowOf(row, h, width)
			to[columns+h], narrow.Host()[i*heads+h] = twoDots(part, rowOf(source.Host(), h, width), rowOf(target.Host(), h, width))
		}
	}
}

// FoldScoresGrad implements Ops.
func (t *Team) FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target Mat) {
	mustFit(isSameShape(gw, w) && isSameShape(gsource, source) && isSameShape(gtarget, target) && isSameShape(source, target))
	mustFit(gwide.Rows == w.Rows && gnarrow.Rows == w.Rows && gnarrow.Cols == source.Rows && gwide.Cols == w.Cols+gnarrow.Cols)
	heads, width, columns := source.Rows, source.Cols, w.Cols
	sources, targets, ofSources, ofTargets := source.Host(), target.Host(), gsource.Host(), gtarget.Host()
	clear(ofSources)
	clear(ofTargets)
	for i := range w.Rows {
		row, to, from := rowOf(w.Host(), i, columns), rowOf(gw.Host(), i, columns), rowOf(gwide.Host(), i, columns+heads)
		copy(to, from)
		for h := range heads {
			gs, gt := from[columns+h], gnarrow.Host()[i*heads+h]
			for j := h * width; j < (h+1)*width; j++ {
				to[j] += float32(gs*sources[j]) + float32(gt*targets[j])
				ofSources[j] += float32(gs * row[j])
				ofTargets[j] += float32(gt * row[j])
			}
		}
	}
}

// twoDots returns Σ z·x and Σ z·y, each in order. Two sums at once take the time of one, which waits for each addition.
func twoDots(z, x, y []float32) (ofX, ofY float32) {
	x, y = x[:len(z)], y[:len(z)]
	for j, v := range z {
		ofX += float32(v * x[j])
		ofY += float32(v * y[j])
	}
	return ofX, ofY
}
