//go:build cu

package gorgonia

import (
	"slices"
	"strings"
	"testing"

	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/internal/fault"
	"siafu/internal/testkit/drivertest"
)

// These tests run with the stand-in library of drivertest as libcuda.so.1: "make cu-test".

// TestSuite runs the conformance suite of devices through package driver.
func TestSuite(t *testing.T) { drivertest.Suite(t, driver.Open) }

// TestList checks the description of GPUs, and the fault of a driver without one.
func TestList(t *testing.T) {
	t.Setenv("FAKE_COUNT", "2")
	gpus, err := driver.List()
	want := []driver.GPU{
		{Name: "Fake 40", ID: strings.Repeat("28", 16), Driver: "12.4", Memory: 5 << 30},
		{Name: "Fake 41", ID: strings.Repeat("29", 16), Driver: "12.4", Memory: 5 << 30},
	}
	if err != nil || !slices.Equal(gpus, want) {
		t.Errorf("%+v, %v", gpus, err)
	}
	if libraries := driver.Libraries(); libraries != nil {
		t.Errorf("libraries that the binding does not use: %+v", libraries)
	}
	t.Setenv("FAKE_COUNT", "0")
	if _, err := driver.List(); fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "finds no GPU") {
		t.Errorf("exit %d, %v", fault.ExitCode(err), err)
	}
}

// TestLongParameters checks that a parameter of more than 8 bytes, which gorgonia.org/cu
// cannot pass, is an error.
func TestLongParameters(t *testing.T) {
	d, err := driver.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	err = s.Launch(&function{name: "kernel"}, device.Launch{}, new(device.Args).Struct(make([]byte, 12), 4))
	if err == nil || !strings.Contains(err.Error(), "12 bytes") {
		t.Errorf("%v", err)
	}
}
