package ranks

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"siafu/cuda/device"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
	"siafu/ranks/config"
)

// hostCoded is an Ops on a device that leaves codecs to the host.
type hostCoded struct{ kernels.Ops }

func (o hostCoded) Fork() kernels.Ops                   { return hostCoded{o.Ops.Fork()} }
func (o hostCoded) Borrow(owner kernels.Ops)            { o.Ops.Borrow(owner.(hostCoded).Ops) }
func (o hostCoded) Has(f kernels.Feature) bool          { return false }
func (o hostCoded) Copier(*mapped.Arena) kernels.Copier { return kernels.SyncCopier(o) }

// leftToHost makes the selected ranks leave codecs to the host.
func leftToHost(with func(r *member), which func(rank int) bool) func(r *member) {
	return func(r *member) {
		with(r)
		if make := r.ops; which(r.world.Rank()) {
			r.ops = func() (kernels.Ops, error) {
				o, err := make()
				return hostCoded{o}, err
			}
		}
	}
}

// scale is a device that counts bytes copied to the host outside of kernels.
type scale struct {
	device.Device
	out *atomic.Int64
}

func (d scale) NewStream() (device.Stream, error) {
	s, err := d.Device.NewStream()
	return scaleStream{s, d.out}, err
}

type scaleStream struct {
	device.Stream
	out *atomic.Int64
}

func (s scaleStream) BeginOut(dst []byte, src device.Ptr) error {
	s.out.Add(int64(len(dst)))
	return s.Stream.BeginOut(dst, src)
}

// A run leaves the same model whether kernels or the host encode and decode rows, on all ranks
// or on some. With kernels, rows are copied to the host in encoded form.
func TestCodecsOnADevice(t *testing.T) {
	t.Parallel()
	directed := generatedSmall(t, true)
	for name, set := range hosttest.Share(t, 2, map[string]func(c *Config){
		"int8":              func(c *Config) { c.Codec = "int8" },
		"bf16+ef":           func(c *Config) { c.Codec = "bf16+ef" },
		"int4+ef, previous": func(c *Config) { c.Codec, c.Refresh = "int4+ef", "previous:none" },
		"sums, int4":        func(c *Config) { c.Codec, c.PreAggregate, c.Model = "int4", "on", "gin" },
		"attention, int8":   func(c *Config) { c.Codec, c.Model, c.Heads = "int8", "gat", 2 },
		"adaptive":          func(c *Config) { c.Codec = "adaptive" },
	}) {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Ranks, c.Hidden, c.Epochs, c.Threads, c.Dropout, c.CheckpointEvery = 3, 16, 2, 2, 0.3, "off"
			set(&c)
			for device, open := range devices() {
				t.Run(device, func(t *testing.T) { codecOnADevice(t, c, directed, open) })
			}
		})
	}
}

func codecOnADevice(t *testing.T, c Config, data string, open func() device.Device) {
	var plain, out atomic.Int64
	weighed := func(sum *atomic.Int64) func(r *member) {
		return onDevice(t, func() device.Device { return scale{open(), sum} })
	}
	train := func(suffix string, with func(r *member)) trained {
		c := c
		c.Out += "-" + filepath.Base(t.Name()) + suffix
		return trainWith(t, c, data, with)
	}
	want := train("-host", leftToHost(onDevice(t, open), func(int) bool { return true }))
	got := train("-kernels", weighed(&out))
	some := train("-some", leftToHost(onDevice(t, open), func(rank int) bool { return rank == 1 }))
	if !bytes.Equal(got.model, want.model) || !bytes.Equal(some.model, want.model) {
		t.Error("model.safetensors differs")
	}
	if c.Codec != "int8" {
		return
	}
	c.Codec = "none"
	train("-plain", weighed(&plain))
	if by := float64(out.Load()) / float64(plain.Load()); by > 0.4 { // 20 bytes for 16 numbers
		t.Errorf("%.2f of the bytes that cross without a codec", by)
	}
}

// A host without page-locked memory trains to the same model; each rank reports this once.
func TestPageableMemory(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := quick(t)
	c.Ranks, c.Servers, c.Hidden, c.Epochs, c.CheckpointEvery = 2, 0, 8, 1, "off"
	var mu sync.Mutex
	var said []string
	train := func(suffix string, s ptx.Settings) trained {
		c := c
		c.Out += suffix
		return trainWith(t, c, data, func(r *member) {
			r.limits.Log = func(line string) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, line)
			}
			r.cfg.Tensor, r.gpus = config.TensorCUDA, (&rack{settings: []ptx.Settings{s}, opened: make([]int, 1)}).gpus()
		})
	}
	want := train("-pinned", ptx.Settings{})
	if len(said) > 0 {
		t.Errorf("%q", said)
	}
	if got := train("-pageable", ptx.Settings{Pageable: true}); !bytes.Equal(got.model, want.model) {
		t.Error("model.safetensors differs")
	}
	if len(said) != 2 || !strings.Contains(said[0], "not page-locked") {
		t.Errorf("%q", said)
	}
}
