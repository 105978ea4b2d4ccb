//go:build !openblas || !cgo

package level3

import "gonum.org/v1/gonum/blas"

// OpenBLAS returns the machine's OpenBLAS with one thread, since callers have
// workers of their own; false in a build without it.
func OpenBLAS() (blas.Float32Level3, bool) { return nil, false }
