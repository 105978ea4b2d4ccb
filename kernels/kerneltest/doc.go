// Package kerneltest is the conformance suite of package kernels: for each
// kernel one function that takes an implementation and runs it over shapes of
// 0, 1 and odd sizes, empty rows, widths that fill no vector, and non-finite
// values. Results are compared with the scalar loop in float64, written here
// independently of the kernel, within the rounding error that the loop in
// float32 may have: n additions of terms t err by at most about n·2⁻²⁴·Σ|t|
// (Higham, "Accuracy and stability of numerical algorithms", section 3.1).
//
// Every output and every input stands between guard values, which are NaNs:
// what is written outside is found, and what is read outside poisons the
// result. Every case runs with 1, 2, 3 and 5 workers and must yield the same
// bits.
//
// Ops runs all of that, and what stands in no slice, through an implementation of
// kernels.Ops. Guarded is one for tests of the layers above: Go code cannot read
// its matrices.
package kerneltest
