// Package forecast says what a training run will need before it runs: the
// memory of each rank, the bytes that ranks exchange in an epoch, and the
// arithmetic. It works from shapes and from the counts of a partitioning, and
// opens nothing.
//
// Each Term of a Memory stands for arrays that a run makes; what they add up to
// is compared with what runs make, byte by byte, in the tests of package ranks.
// A change there that makes another array is a change here.
//
// Nothing here is collective.
package forecast
