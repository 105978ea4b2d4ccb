//go:build cu

package gorgonia

import (
	"bytes"
	"fmt"
	"runtime"

	"gorgonia.org/cu"

	"siafu/cuda/device"
)

// module implements device.Module.
type module struct {
	device *gpu
	name   string
	handle cu.Module
}

// logBytes bounds the log of the PTX compiler.
const logBytes = 4096

func (d *gpu) Load(name, text string) (device.Module, error) {
	m := &module{device: d, name: name}
	log := make([]byte, logBytes)
	return device.Create[device.Module](&d.resources, m, func() error {
		err := d.in("cuModuleLoadDataEx", func() (err error) {
			m.handle, err = cu.LoadDataEx(text, &cu.JITErrorLogBuffer{Buffer: log})
			runtime.KeepAlive(log)
			return err
		})
		if err != nil {
			log, _, _ := bytes.Cut(log, []byte{0})
			return fmt.Errorf("%s: %w: %s", name, err, log)
		}
		return nil
	}, func() error { return d.in("cuModuleUnload", func() error { return m.handle.Unload() }) })
}

func (m *module) Function(name string) (device.Function, error) {
	f := &function{name: name}
	err := m.device.in("cuModuleGetFunction", func() (err error) {
		f.handle, err = m.handle.Function(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", m.name, name, err)
	}
	return f, nil
}

func (m *module) Global(name string) (device.Ptr, int, error) {
	var at cu.DevicePtr
	var size int64
	err := m.device.in("cuModuleGetGlobal", func() (err error) {
		at, size, err = m.handle.Global(name)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %s: %w", m.name, name, err)
	}
	return device.Ptr(at), int(size), nil
}

func (m *module) Unload() error { return m.device.resources.End(m) }

// function implements device.Function.
type function struct {
	name   string
	handle cu.Function
}

func (f *function) Name() string { return f.name }
