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
	foldScores(wide.Host(), narrow.Host(), w.Rows, source.Rows, source.Cols, w.Host(), source.Host(), target.Host())
}

// FoldScoresGrad implements Ops.
func (t *Team) FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target Mat) {
	mustFit(isSameShape(gw, w) && isSameShape(gsource, source) && isSameShape(gtarget, target) && isSameShape(source, target))
	mustFit(gwide.Rows == w.Rows && gnarrow.Rows == w.Rows && gnarrow.Cols == source.Rows && gwide.Cols == w.Cols+gnarrow.Cols)
	foldScoresGrad(gw.Host(), gsource.Host(), gtarget.Host(), w.Rows, source.Rows, source.Cols,
		gwide.Host(), gnarrow.Host(), w.Host(), source.Host(), target.Host())
}

func foldScores(wide, narrow []float32, in, heads, width int, w, source, target []float32) {
	columns := heads * width
	for i := range in {
		row, to := rowOf(w, i, columns), rowOf(wide, i, columns+heads)
		copy(to, row)
		for h := range heads {
			part := rowOf(row, h, width)
			to[columns+h] = dot(part, rowOf(source, h, width))
			narrow[i*heads+h] = dot(part, rowOf(target, h, width))
		}
	}
}

func foldScoresGrad(gw, gsource, gtarget []float32, in, heads, width int, gwide, gnarrow, w, source, target []float32) {
	columns := heads * width
	clear(gsource[:columns])
	clear(gtarget[:columns])
	for i := range in {
		row, to, from := rowOf(w, i, columns), rowOf(gw, i, columns), rowOf(gwide, i, columns+heads)
		copy(to, from)
		for h := range heads {
			gs, gt := from[columns+h], gnarrow[i*heads+h]
			for j := h * width; j < (h+1)*width; j++ {
				to[j] += gs*source[j] + gt*target[j]
				gsource[j] += gs * row[j]
				gtarget[j] += gt * row[j]
			}
		}
	}
}
