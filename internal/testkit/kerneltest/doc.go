// Package kerneltest is the conformance suite of package kernels. For each
// kernel one function or method of a Suite runs it over shapes of 0, 1 and odd sizes, empty rows, widths that
// fill no vector, and non-finite
// values. Results are compared with the scalar loop in float64, written
// independently of the kernel, within the rounding error of the loop in
// float32: n additions of terms t err by at most about n·2⁻²⁴·Σ|t|
// (Higham, "Accuracy and stability of numerical algorithms", section 3.1).
//
// Every output and every input is surrounded by guard values, which are NaNs:
// a write outside is detected, and a read outside makes the result NaN. Every
// case runs with 1, 2, 3 and 5 workers and all instruction sets, and must yield the same bits.
//
// Suite.All also tests what only an implementation of kernels.Ops has. Guarded is an
// implementation for tests of the layers above: Go code cannot read its matrices.
package kerneltest
