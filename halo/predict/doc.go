// Package predict predicts ghost rows of the current epoch from stale ones (SAT, Bai et al.,
// arXiv 2308.13466, section V).
//
// Wrap makes a Source around a source with stale ghost rows. Offer shows the source the own rows
// of every epoch, from which it learns how rows have changed since the epochs of the ghosts. Take
// applies the change to the ghost rows, or sets the change as a map for sums of ghost rows
// (Options.Maps). In mini-batches with a history, the history has the earlier own rows
// (Options.Stored). Momentum averages rows of such a history instead. The ages of a View stay those
// of the rows that were received. Gradients pass through unchanged: predicted rows are constants
// (equation 12).
//
// Kinds: transfer is an affine map that is fitted in each epoch. The others are recurrent graph
// networks (recurrent.go: the prediction; cell.go: a step; readout.go: the regression of changes on
// states). Train trains them online (algorithm 1, online.go); it is collective. If a prediction is impossible, or if it is not better than
// stale rows on held-out own rows (the constraint of equation 9), a layer uses stale rows.
package predict
