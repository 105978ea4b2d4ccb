package ranks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
	"siafu/kernels/model"
)

// onDevice makes a rank compute on the device returned by open, with cuBLAS if available.
func onDevice(t testing.TB, open func() device.Device) func(r *member) {
	return func(r *member) {
		var first *cuda.Ops
		r.ops = func() (kernels.Ops, error) {
			if first != nil {
				return first.Fork(), nil
			}
			d := open()
			t.Cleanup(func() { d.Close() })
			var err error
			first, err = cuda.New(d, cuda.Auto)
			return first, err
		}
	}
}

// standIn returns an interpreter of the shipped kernels.
func standIn() device.Device { return ptx.New(ptx.Settings{}) }

// bare hides the libraries of a device: it computes with the shipped kernels.
type bare struct{ device.Device }

// openGPU opens this host's GPU.
func openGPU() device.Device {
	d, err := driver.Open(0)
	if err != nil {
		panic(err)
	}
	return d
}

// hasGPU reports whether this host has a GPU.
var hasGPU = sync.OnceValue(func() bool {
	list, err := driver.List()
	return err == nil && len(list) > 0
})

// devices returns the interpreter and, if this host has one, its GPU, with the shipped kernels.
func devices() map[string]func() device.Device {
	all := map[string]func() device.Device{"interpreter": standIn}
	if hasGPU() {
		all["GPU"] = func() device.Device { return bare{openGPU()} }
	}
	return all
}

// On a device with the shipped kernels, networks train as on the processor: losses differ only
// by the order of sums in float32.
func TestTrainingOnADevice(t *testing.T) {
	t.Parallel()
	directed, sparse := generatedSmall(t, true), bag(t)
	for name, set := range hosttest.Share(t, 2, map[string]func(c *Config) (data string){
		"gcn":          func(c *Config) string { return directed },
		"gcn, 3 ranks": func(c *Config) string { c.Ranks, c.Codec = 3, "int8"; return directed },
		"gcn, bf16":    func(c *Config) string { c.Gather, c.Features = "bf16", "bf16"; return directed },
		"sage":         func(c *Config) string { c.Model, c.Ranks, c.Servers = "sage", 2, 1; return directed },
		"gat":          func(c *Config) string { c.Model, c.Heads, c.AttentionDropout = "gat", 2, 0.3; return directed },
		"gat, 3 ranks": func(c *Config) string { c.Model, c.Ranks, c.Servers = "gat", 4, 1; return directed },
		"sign, kept": func(c *Config) string {
			c.Model, c.Ranks, c.CacheInput, c.Features = "sign", 2, "on", "bf16"
			return directed
		},
		"gin, momentum": func(c *Config) string { c.Model, c.Optimizer, c.LR = "gin", "sgd", 0.01; return directed },
		"mlp, sparse":   func(c *Config) string { c.Model, c.InputDropout, c.CacheInput = "mlp", 0.3, "off"; return sparse },
	}) {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Hidden, c.Epochs, c.Threads, c.Dropout, c.CheckpointEvery = 8, 4, 2, 0.3, "off"
			data := set(&c)
			want, out := train(t, c, data), c.Out
			for name, open := range devices() {
				c.Out = out + "-" + name
				got := trainWith(t, c, data, onDevice(t, open))
				sameLosses(t, name, got.losses(), want.losses(), 1e-5)
			}
		})
	}
}

// Networks train the same with a library's dense products. Layers are wide enough that the library
// also computes products with an epilogue.
func TestTrainingWithCuBLAS(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, of := range hosttest.ShareOf(t, 2, []string{"gcn", "gat"}) {
		t.Run(of, func(t *testing.T) {
			c := quick(t)
			c.Model, c.Layers, c.Hidden, c.Epochs, c.Threads, c.Dropout, c.CheckpointEvery = of, 3, 48, 3, 2, 0.3, "off"
			want, out := train(t, c, data), c.Out
			if hasGPU() {
				c.Out = out + "-GPU"
				sameLosses(t, "GPU", trainWith(t, c, data, onDevice(t, openGPU)).losses(), want.losses(), 1e-5)
			}
			c.Out = out + "-device"
			got := trainWith(t, c, data, onDevice(t, func() device.Device { return ptx.New(ptx.Settings{Libraries: true}) }))
			sameLosses(t, "device", got.losses(), want.losses(), 1e-5)
			if log, err := os.ReadFile(filepath.Join(c.Out, "log.txt")); err != nil ||
				!strings.Contains(string(log), " with a stand-in for cuBLAS ") {
				t.Errorf("%v\n%s", err, log)
			}
		})
	}
}

// mortal is a device that fails in the middle of a run, on any stream.
type mortal struct {
	device.Device
	left atomic.Int64 // launches before the failure
}

func (d *mortal) NewStream() (device.Stream, error) {
	s, err := d.Device.NewStream()
	return mortalStream{s, d}, err
}

type mortalStream struct {
	device.Stream
	device *mortal
}

func (s mortalStream) Launch(f device.Function, l device.Launch, args *device.Args) error {
	if s.device.left.Add(-1) < 0 {
		return errors.New("an illegal address")
	}
	return s.Stream.Launch(f, l, args)
}

// A device without memory for a run, or one that fails during the run, ends the run with an
// error, on one rank and on several.
func TestDeviceFails(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]struct {
		open func() device.Device
		says string
	}{
		"no room": {func() device.Device { return ptx.New(ptx.Settings{Memory: 64 << 10}) }, "too little memory for this run"},
		"fails": {func() device.Device {
			d := &mortal{Device: standIn()}
			d.left.Store(40)
			return d
		}, "the device failed: an illegal address"},
	} {
		for _, ranks := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " ranks=", ranks), func(t *testing.T) { deviceFails(t, ranks, f.open, f.says) })
		}
	}
}

func deviceFails(t *testing.T, ranks int, open func() device.Device, says string) {
	c, data := quick(t), generated(t, false)
	c.Ranks = ranks
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer)
	err := runMembers(c, data, IO{Out: io.Discard, Err: io.Discard}, onDevice(t, open), (*member).train)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
}
