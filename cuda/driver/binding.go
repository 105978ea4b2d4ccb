package driver

import (
	"errors"

	"siafu/cuda/device"
	"siafu/internal/fault"
)

// Binding is an implementation of List and Open.
type Binding struct {
	List func() ([]GPU, error)
	Open func(n int) (device.Device, error)
}

// binding replaces the calls of this package, if it is not nil.
var binding *Binding

// Use replaces List and Open by the functions of b, whose host has no Libraries. Only an init
// function may call it.
func Use(b Binding) { binding = &b }

// NoGPU returns the fault of a driver that finds no GPU. cause may be nil.
func NoGPU(cause error) error {
	e := fault.New(fault.Config, "cuda", "", "the NVIDIA driver finds no GPU on this host")
	e.Err = cause
	return e.Then("check nvidia-smi and CUDA_VISIBLE_DEVICES, request a GPU from the batch system (sbatch --gres=gpu:1), or compute " +
		"on the CPU with --tensor cpu")
}

// Unusable returns the fault of GPU n, which does not open: err, if that is one already.
func Unusable(n int, err error) error {
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		return err
	}
	e := fault.New(fault.Config, "cuda", "", "GPU %d cannot be used", n)
	e.Err = err
	return e.Then("check it with nvidia-smi, or choose another GPU with CUDA_VISIBLE_DEVICES")
}

// leastMajor is the minimum compute capability of the kernels.
const leastMajor = 7

// Supported returns a Config fault if the kernels do not run on GPU n.
func Supported(n int, p device.Properties) error {
	if p.Major >= leastMajor {
		return nil
	}
	return fault.New(fault.Config, "cuda", "", "GPU %d (%s) has compute capability %d.%d, but the kernels need %d.0 or later", n, p.Name,
		p.Major, p.Minor, leastMajor).
		Then("choose another GPU with CUDA_VISIBLE_DEVICES, or compute on the CPU with --tensor cpu")
}
