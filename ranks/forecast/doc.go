// Package forecast says what a training run will need before it runs: the
// memory of each rank, the bytes that ranks exchange in an epoch, and the
// arithmetic. It works from shapes and from the counts of a partitioning, and
// opens nothing.
//
// Memory is not calculated but made: an engine makes the arrays of a rank on
// arenas that only count (engine.Sketch), so that a change there is counted here
// by itself. What they add up to is compared with what runs make, byte by byte, in
// the tests of package ranks. Formulas are left where no arena counts: for Go's
// heap, for weights, which others hand to an engine, and for what intervals make,
// of which one is sketched (model.Spec.Footprint).
//
// Nothing here is collective.
package forecast
