// Package gorgonia implements device.Device with gorgonia.org/cu, for hosts with a CUDA
// toolkit. It is part of builds with the tag cu, "make build CU=1"; importing it makes
// package driver use it.
//
// gorgonia.org/cu is linked with libcuda.so.1 and needs cuda.h. A program with it does not
// start on a host without the driver, and exits with code 1 during initialisation if the
// driver finds no GPU. Package driver has neither limit, and is the default.
//
// The package calls the driver itself where gorgonia.org/cu has no function: to page-lock
// memory, and to give the context to C libraries. It does not use cuBLAS and cuSPARSE.
package gorgonia
