//go:build !openblas || !cgo

package level3

import "gonum.org/v1/gonum/blas"

// OpenBLAS returns the machine's OpenBLAS with one thread, because callers have their own
// workers. It returns false in a build without OpenBLAS.
func OpenBLAS() (blas.Float32Level3, bool) { return nil, false }
