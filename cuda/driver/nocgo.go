//go:build !cgo

package driver

import (
	"siafu/cuda/device"
	"siafu/internal/fault"
)

// noCgo returns the error of a build that cannot open the driver's library.
func noCgo() error {
	return fault.New(fault.Config, "cuda", "", "this siafu was built without cgo and cannot open the NVIDIA driver").
		Then(`install a C compiler and build siafu with "make build"`)
}

// List fails with a Config fault.
func List() ([]GPU, error) { return nil, noCgo() }

// Open fails with a Config fault.
func Open(int) (device.Device, error) { return nil, noCgo() }

// Libraries returns none.
func Libraries() []Found { return nil }
