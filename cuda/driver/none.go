//go:build !cuda || !cgo

package driver

import (
	"siafu/cuda/device"
	"siafu/graph/fault"
)

// Built tells whether this build can compute on GPUs.
func Built() bool { return false }

// missing is the error of every call.
func missing() error {
	return fault.New(fault.Config, "cuda", "", "this siafu has been built without CUDA").
		Then("build one with it: make build CUDA=1")
}

// List fails with a Config fault: this build knows no GPU.
func List() ([]GPU, error) { return nil, missing() }

// Open fails so, too.
func Open(int) (device.Device, error) { return nil, missing() }

// Libraries are none.
func Libraries() []Found { return nil }
