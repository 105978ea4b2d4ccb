//go:build openblas && cgo

package kernels

// #cgo LDFLAGS: -lopenblas
// void openblas_set_num_threads(int n);
import "C"

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/netlib/blas/netlib"
)

// openBLASLevel3 returns the machine's OpenBLAS with one thread, because callers have their own
// workers. It returns false in a build without OpenBLAS.
func openBLASLevel3() (blas.Float32Level3, bool) {
	C.openblas_set_num_threads(1)
	return netlib.Implementation{}, true
}
