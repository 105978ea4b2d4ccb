package ranks

import (
	"io"
	"strings"
	"testing"

	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/cuda/ptx"
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
)

// onDevice has a rank compute on the device that open gives to it.
func onDevice(t testing.TB, open func() device.Device) func(r *run) {
	return func(r *run) {
		var first *cuda.Ops
		r.ops = func() (kernels.Ops, error) {
			if first != nil {
				return first.Fork(), nil
			}
			d := open()
			t.Cleanup(func() { d.Close() })
			var err error
			first, err = cuda.New(d)
			return first, err
		}
	}
}

// standIn is an interpreter of the kernels that are shipped.
func standIn() device.Device { return ptx.New(ptx.Settings{}) }

// On a device, by the kernels that are shipped, networks train as on the processor:
// losses differ by the order of sums in float32 alone.
func TestTrainingOnADevice(t *testing.T) {
	directed, sparse := generated(t, true), bag(t)
	for name, set := range map[string]func(c *Config) (data string){
		"gcn":           func(c *Config) string { return directed },
		"gcn, 3 ranks":  func(c *Config) string { c.Ranks, c.Codec = 3, "int8"; return directed },
		"gcn, bf16":     func(c *Config) string { c.Gather, c.Features = "bf16", "bf16"; return directed },
		"sage":          func(c *Config) string { c.Model, c.Ranks, c.Servers = "sage", 2, 1; return directed },
		"gat":           func(c *Config) string { c.Model, c.Heads, c.AttentionDropout = "gat", 2, 0.3; return directed },
		"gat, 3 ranks":  func(c *Config) string { c.Model, c.Ranks, c.Servers = "gat", 4, 1; return directed },
		"gin, momentum": func(c *Config) string { c.Model, c.Optimizer, c.LR = "gin", "sgd", 0.01; return directed },
		"mlp, sparse":   func(c *Config) string { c.Model, c.InputDropout, c.CacheInput = "mlp", 0.3, "off"; return sparse },
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Hidden, c.Epochs, c.Threads, c.Dropout, c.CheckpointEvery = 8, 4, 2, 0.3, "off"
			data := set(&c)
			want := train(t, c, data)
			c.Out += "-device"
			got := trainWith(t, c, data, onDevice(t, standIn))
			sameLosses(t, "device", got.losses(), want.losses(), 1e-5)
		})
	}
}

// small is a stand-in without room for a run.
func small() device.Device { return ptx.New(ptx.Settings{Memory: 64 << 10}) }

// A device without room for a run is that run's error, which says so.
func TestDeviceWithoutRoom(t *testing.T) {
	c, data := quick(t), generated(t, false)
	err := launch(1, world.Limits{}, IO{Out: io.Discard, Err: io.Discard}, func(w world.Comm, kind string) error {
		r := &run{cfg: c, data: data, kind: kind, world: w, arena: mapped.NewArena()}
		onDevice(t, small)(r)
		defer r.close()
		return r.whole(IO{Out: io.Discard, Err: io.Discard})
	})
	if err == nil || !strings.Contains(err.Error(), "no room for this run") {
		t.Errorf("%v", err)
	}
}
