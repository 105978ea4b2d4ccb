// Package driver provides the GPUs of this host through NVIDIA's driver: a device.Device
// for each. Without cgo, without the driver and without a GPU its functions return faults
// of kind Config, which name what is missing and the remedy. cuBLAS and cuSPARSE, whose
// calls are in libraries.h, are opened in the same way, if they are installed.
//
// Design note: the driver library is opened at run time, and its calls are declared
// in calls.h. A program that is linked with it, as by gorgonia.org/cu, needs CUDA's
// headers to be built, does not start if libcuda.so.1 is missing, and exits if the
// driver finds no GPU. The program of this package runs anywhere. Package gorgonia is the
// other binding; Use selects it. The calls are those of CUDA 11.4, which later
// drivers keep.
package driver

// Library is the file name of the driver for the dynamic linker.
const Library = "libcuda.so.1"

// GPU describes a GPU that is not open.
type GPU struct {
	Name   string
	ID     string // the same in all processes; parts of one GPU have different ones
	Driver string // the newest CUDA version that the driver supports, such as 12.4
	Memory int64  // bytes
}

// Found is an additional library, or the reason why it cannot be used.
type Found struct {
	Name    string // cublas or cusparse
	Version string
	Err     error
}
