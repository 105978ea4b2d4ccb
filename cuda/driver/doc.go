// Package driver is the GPUs of this host, through NVIDIA's driver: a device.Device
// of each. It needs a build with the tag cuda and cgo; another build, a host without
// the driver and one without a GPU say what is missing and what helps, as faults of
// kind Config. cuBLAS and cuSPARSE, whose calls are in libraries.h, are opened in the
// same way where they are; nothing needs them.
//
// Design note: the driver library is opened at run time, and its calls are declared
// in calls.h. A binding that is linked with it, such as gorgonia.org/cu, makes a
// program that does not start where libcuda.so.1 is absent, needs the CUDA toolkit to
// be built, and ends the process at its start where the driver finds no GPU. The
// program of this one runs anywhere. The calls are those of CUDA 11.4, which later
// drivers keep.
package driver

// Library is the driver, as the dynamic linker knows it.
const Library = "libcuda.so.1"

// GPU is what can be said of a GPU before it is opened.
type GPU struct {
	Name   string
	ID     string // the same in all processes; parts of one GPU have different ones
	Driver string // the newest CUDA that the driver knows, such as 12.4
	Memory int64  // bytes
}

// Found is a library beside the driver, or why there is none that can be used.
type Found struct {
	Name    string // cublas or cusparse
	Version string
	Err     error
}
