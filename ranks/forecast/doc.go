// Package forecast estimates the needs of a training run: the memory of each rank, the
// bytes that ranks exchange per epoch, and the arithmetic. It works from shapes and the
// counts of a partitioning, and opens no files. Epoch estimates times from Rates, which Host
// measures.
//
// Memory is not calculated from formulas: an engine makes the arrays of a rank on arenas that
// only count bytes (engine.Sketch), so the forecast follows every change of the engine. The tests
// of package ranks compare the sums with real runs, byte by byte. Formulas remain for three
// things: Go's heap, the weights, which callers pass to an engine, and the arrays of intervals,
// one of which is sketched (model.Spec.Footprint).
//
// Nothing here is collective.
package forecast
