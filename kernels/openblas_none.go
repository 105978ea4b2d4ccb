//go:build !openblas || !cgo

package kernels

import "gonum.org/v1/gonum/blas"

// openBLASLevel3 returns the machine's OpenBLAS with one thread, because callers have their own
// workers. It returns false in a build without OpenBLAS.
func openBLASLevel3() (blas.Float32Level3, bool) { return nil, false }
