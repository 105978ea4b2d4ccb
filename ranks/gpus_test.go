package ranks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/ptx"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/world"
)

// rack is a host of GPU stand-ins, and counts the use of each.
type rack struct {
	settings []ptx.Settings

	mu     sync.Mutex
	opened []int // by number
	made   []*watched
}

// watched records whether a device has allocated memory, and whether it was closed.
type watched struct {
	device.Device
	rack           *rack
	memory, closed bool
}

func (d *watched) Alloc(bytes int) (device.Ptr, error) {
	d.rack.mu.Lock()
	defer d.rack.mu.Unlock()
	d.memory = true
	return d.Device.Alloc(bytes)
}

func (d *watched) Close() error {
	d.rack.mu.Lock()
	defer d.rack.mu.Unlock()
	d.closed = true
	return d.Device.Close()
}

// racked returns a host with n GPUs of the given memory; 0: the stand-in's default.
func racked(n int, memory int64) *rack {
	return &rack{settings: slices.Repeat([]ptx.Settings{{Memory: memory}}, n), opened: make([]int, n)}
}

func (k *rack) gpus() gpus {
	return gpus{list: func() ([]driver.GPU, error) {
		var list []driver.GPU
		for n := range k.settings {
			list = append(list, driver.GPU{Name: "a test's", ID: fmt.Sprint("id ", n)})
		}
		return list, nil
	}, open: func(n int) (device.Device, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.opened[n]++
		d := &watched{Device: ptx.New(k.settings[n]), rack: k}
		k.made = append(k.made, d)
		return d, nil
	}}
}

// with makes a rank use the GPUs of a rack.
func (k *rack) with(r *member) { r.gpus = k.gpus() }

// onGPUs returns a short run with --tensor cuda.
func onGPUs(t testing.TB, ranks, servers int) Config {
	c := quick(t)
	c.Tensor, c.Ranks, c.Servers = config.TensorCUDA, ranks, servers
	c.Hidden, c.Epochs, c.Threads, c.Dropout, c.CheckpointEvery = 8, 3, 2, 0.3, "off"
	return c
}

// refused returns the error of a run on GPUs.
func refused(c Config, data string, warn io.Writer, place func(*member)) error {
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer)
	return runMembers(c, data, IO{Out: io.Discard, Err: warn}, place, (*member).train)
}

// With --tensor cuda each graph rank computes on its own or a shared GPU, servers on none, and
// losses are the processor's. All opened GPUs are closed.
func TestTrainingOnGPUs(t *testing.T) {
	t.Parallel()
	data := generatedSmall(t, true)
	for _, of := range []struct {
		gpus        int
		model, norm string
		graph       string
		opened      []int
	}{
		{3, "gcn", "off", "", []int{1, 1, 0}},
		{1, "gcn", "off", "", []int{2}},
		{2, "gat", "off", "", []int{1, 1}},
		{1, "sage", "l2", "", []int{2}},
		{1, "sage", "ball", config.GraphCPU, []int{2}},
	} {
		t.Run(fmt.Sprint(of.model, " ", of.norm, " ", of.gpus), func(t *testing.T) {
			c := onGPUs(t, 3, 1)
			c.Model, c.Norm, c.Tensor = of.model, of.norm, "cpu"
			want := train(t, c, data)
			c.Tensor, c.GraphWork, c.Out = config.TensorCUDA, of.graph, c.Out+"-gpus"
			k := racked(of.gpus, 0)
			got := trainWith(t, c, data, k.with)
			sameLosses(t, "GPUs", got.losses(), want.losses(), 1e-5)
			if !slices.Equal(k.opened, of.opened) || got.Summary.Tensor != "cuda" {
				t.Errorf("opened %v, want %v; tensor=%s", k.opened, of.opened, got.Summary.Tensor)
			}
			for n, d := range k.made {
				if !d.closed || !d.memory {
					t.Errorf("device %d: closed %t, used %t", n, d.closed, d.memory)
				}
			}
		})
	}
}

// GPUs are assigned round-robin to the ranks of a host, independent of other hosts. The parts
// of a rank are on one GPU.
func TestLocalRank(t *testing.T) {
	t.Parallel()
	hosts := strings.Fields("a a b a b b")
	flat := world.View{Parts: 6, Ranks: 6}
	for part, want := range []int{0, 1, 0, 2, 1, 2} {
		if got := localRank(flat, hosts, part); got != want {
			t.Errorf("part %d is number %d, want %d", part, got, want)
		}
	}
	shared := world.View{Parts: 6, Ranks: 3} // 2 on each
	for part := range 6 {
		same := strings.Fields("a a a a a a")
		want := []int{0, 1, 2}[shared.Rank(part)]
		if got := localRank(shared, same, part); got != want {
			t.Errorf("of rank %d, part %d is number %d", shared.Rank(part), part, got)
		}
	}
}

// --tensor cuda works with the other options: parts, layers of several kinds, recomputed activations, bounded
// asynchrony, and resuming from a checkpoint of the processor.
func TestOptionsOnGPUs(t *testing.T) {
	t.Parallel()
	data := generatedSmall(t, true)
	for name, set := range hosttest.Share(t, 4, map[string]func(*Config){
		"recompute": func(c *Config) { c.Recompute = true },
		"previous":  func(c *Config) { c.Refresh, c.Codec = "previous:none", "bf16" },
		"delay":     func(c *Config) { c.Refresh, c.Codec = "delay:2", "bf16" },
		"sample":    func(c *Config) { c.Refresh = "sample:0.5" },
		"async":     func(c *Config) { c.Mode, c.Servers, c.Ranks, c.EvalEvery = "async", 0, 1, 3 },
		"sums":      func(c *Config) { c.PreAggregate, c.CacheInput, c.LayerKinds = "on", "off", "gcn,sage" },
		"computed":  func(c *Config) { c.RecomputeGhosts, c.CacheInput, c.InputDropout = "layers:1", "on", 0 },
		"two hops":  func(c *Config) { c.RecomputeGhosts, c.CacheInput, c.InputDropout, c.Layers = "all", "on", 0, 3 },
		"fraction": func(c *Config) {
			c.RecomputeGhosts, c.CacheInput, c.InputDropout, c.Layers, c.GraphWork = "layers:1.5", "on", 0, 3, "cpu"
		},
		"attention": func(c *Config) { c.RecomputeGhosts, c.Model, c.Layers = "all", "gat", 3 },
		"dynamic":   func(c *Config) { c.RecomputeGhosts, c.Model, c.Layers, c.GraphWork = "all", "gatv2", 3, "cpu" },
		"maxima": func(c *Config) {
			c.RecomputeGhosts, c.Model, c.Layers, c.Norm, c.GraphWork = "all", "sage-max", 3, "off", "cpu"
		},
		"skipped": func(c *Config) { c.RecomputeGhosts, c.Model, c.Layers = "all", "gcnii", 3 },
	}) {
		t.Run(name, func(t *testing.T) {
			c := onGPUs(t, 2, 0)
			set(&c)
			c.Intervals = 1
			c.Tensor = "cpu"
			want := train(t, c, data)
			c.Tensor, c.Out = config.TensorCUDA, c.Out+"-gpus"
			sameLosses(t, "GPUs", trainWith(t, c, data, racked(1, 0).with).losses(), want.losses(), 1e-5)
		})
	}
	c := onGPUs(t, 2, 0)
	c.Tensor, c.Epochs = "cpu", 6
	want := train(t, c, data)
	c.Out, c.Epochs, c.CheckpointEvery = c.Out+"-gpus", 3, "3e"
	train(t, c, data)
	c.Tensor, c.Epochs, c.Resume = config.TensorCUDA, 6, "auto"
	sameLosses(t, "resumed", trainWith(t, c, data, racked(2, 0).with).losses(), want.losses(), 1e-5)
}

// Rows in transit between two epochs are restored from a checkpoint of GPUs: encoded rows,
// with their residuals, and uncoded rows.
func TestGhostsGoOnOnGPUs(t *testing.T) {
	t.Parallel()
	data := generatedSmall(t, true)
	for p, policy := range []string{"previous:none", "delay:2"} {
		for k, rows := range []string{"none", "int8", "int4+ef"} {
			if !hosttest.Sampled(2, p, k) {
				continue
			}
			t.Run(policy+" "+rows, func(t *testing.T) {
				c := onGPUs(t, 2, 0)
				c.Tensor, c.Epochs, c.Refresh, c.Codec = config.TensorCUDA, 4, policy, rows
				want := trainWith(t, c, data, racked(1, 0).with)
				c.Out, c.Epochs, c.CheckpointEvery = c.Out+"-resumed", 2, "2e"
				trainWith(t, c, data, racked(1, 0).with)
				c.Epochs, c.Resume = 4, "auto"
				sameLosses(t, "resumed", trainWith(t, c, data, racked(1, 0).with).losses(), want.losses(), 0)
			})
		}
	}
}

// The parts of a rank are on the rank's GPU, with graph work there and on the processor.
func TestPartsOnGPUs(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, graphWork := range []string{"", config.GraphCPU} {
		t.Run(graphWork, func(t *testing.T) { partsOnGPUs(t, data, graphWork) })
	}
}

func partsOnGPUs(t *testing.T, data, graphWork string) {
	c := onGPUs(t, 2, 0)
	c.GraphWork = graphWork
	c.Parts, c.Tensor, c.Intervals = 3, "cpu", 2
	want := train(t, c, data)
	c.Tensor, c.Out = config.TensorCUDA, c.Out+"-gpus"
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer)
	v, err := c.View(2)
	if err != nil {
		t.Fatal(err)
	}
	k, out := racked(2, 0), IO{Out: io.Discard, Err: io.Discard}
	err = launchParts(2, v, world.Limits{}, out, func(w world.Comm, kind string, limits world.Limits) error {
		r := newMember(c, data, v, w, kind, out)
		r.limits, r.gpus = limits, k.gpus()
		defer r.views.close()
		defer r.close()
		return r.train()
	})
	if err != nil {
		t.Fatal(err)
	}
	sameLosses(t, "GPUs", readRun(t, c.Out).losses(), want.losses(), 1e-5)
	if !slices.Equal(k.opened, []int{len(v.Carried(0)), len(v.Carried(1))}) {
		t.Errorf("opened %v", k.opened)
	}
}

// hosted is a communicator whose ranks report the given hosts.
type hosted struct {
	world.Comm
	hosts []string
}

func (h hosted) Hosts() []string { return h.hosts }

// On two hosts a run uses each host's first GPU; sharing is per host.
func TestGPUsOfHosts(t *testing.T) {
	t.Parallel()
	hosts, k := []string{"a", "b", "a", "b"}, racked(2, 0)
	var mu sync.Mutex
	users := map[int][]int64{}
	err := launch(4, world.Limits{}, IO{Out: io.Discard, Err: io.Discard}, func(w world.Comm, kind string) error {
		c := onGPUs(t, 4, 1)
		r := newMember(c, "", world.View{}, hosted{w, hosts}, kind, IO{})
		r.gpus = k.gpus()
		defer r.close()
		if err := errors.Join(r.assign(), r.agreeOnGPUs()); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if r.gpu != nil {
			users[r.rank] = append([]int64{int64(r.gpu.number)}, r.gpu.users...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]int64{0: {0, 1, 0, 0, 0}, 1: {0, 0, 1, 0, 0}, 2: {1, 0, 0, 1, 0}}
	if fmt.Sprint(users) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", users, want)
	}
}

// A host without GPUs refuses the run on all ranks with one error, before rank 0 has
// written anything.
func TestNoGPUs(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := onGPUs(t, 3, 1)
	none := fault.New(fault.Config, "cuda", "", "no GPU here")
	err := refused(c, data, io.Discard, func(r *member) {
		r.gpus = racked(1, 0).gpus()
		if r.world.Rank() == 1 { // one host of several
			r.gpus.list = func() ([]driver.GPU, error) { return nil, none }
		}
	})
	if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "no GPU here") {
		t.Errorf("exit %d, %v", fault.ExitCode(err), err)
	}
	if list, err := driver.List(); err == nil {
		t.Skipf("this host has GPUs: %+v", list)
	}
	err = Train(t.Context(), c, data, IO{Out: io.Discard, Err: io.Discard})
	if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "cuda: ") || !strings.Contains(err.Error(), "NVIDIA driver") {
		t.Errorf("exit %d, %v", fault.ExitCode(err), err)
	}
	if left, _ := filepath.Glob(c.Out + "*"); left != nil {
		t.Errorf("left %v", left)
	}
}

// A run that requires cuBLAS is refused on all ranks if a GPU has none.
func TestNoCuBLAS(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, ranks := range []int{1, 3} {
		c := onGPUs(t, ranks, 0)
		c.CUDABLAS = "cublas"
		k := racked(1, 0)
		if err := refused(c, data, io.Discard, k.with); fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "no cuBLAS") {
			t.Errorf("exit %d, %v", fault.ExitCode(err), err)
		}
		if left, _ := filepath.Glob(c.Out + "*"); left != nil {
			t.Errorf("left %v", left)
		}
		for _, d := range k.made {
			if !d.closed {
				t.Error("a device stays open")
			}
		}
	}
}

// The doctor reports the GPUs, or why there are none.
func TestGPULines(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]gpus{
		"tensor cuda=false: cuda: none; buy one\n": {list: func() ([]driver.GPU, error) {
			return nil, fault.New(fault.Config, "cuda", "", "none").Then("buy one")
		}},
		"tensor cuda=true\ngpu number=0 name=\"A 1\" memory_bytes=7 driver=12.4 id=ab\n": {list: func() ([]driver.GPU, error) {
			return []driver.GPU{{Name: "A 1", ID: "ab", Driver: "12.4", Memory: 7}}, nil
		}},
		"tensor cuda=true\ncublas=true version=12.4.5\ncusparse=false: no such library; install it and name its " +
			"folder in LD_LIBRARY_PATH\n": {
			list: func() ([]driver.GPU, error) { return nil, nil },
			libraries: func() []driver.Found {
				return []driver.Found{{Name: "cublas", Version: "12.4.5"}, {Name: "cusparse", Err: device.ErrLibrary}}
			},
		},
	} {
		var b bytes.Buffer
		if findGPUs(&doctorReport{out: &b}, g); b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}
