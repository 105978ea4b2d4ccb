package ranks

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"siafu/cuda/device"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
)

// If the arrays of all ranks on a GPU do not fit into its memory, the run is refused before
// any allocation, with their size; --force-memory continues.
func TestGPUHasNoRoom(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	partitionBy(t, data, "fennel", 2)
	c := onGPUs(t, 2, 0)
	for name, of := range map[string]struct {
		gpus int
		here string
	}{"each": {2, "arrays of 1 of the run's ranks"}, "together": {1, "arrays of 2 of the run's ranks"}} {
		t.Run(name, func(t *testing.T) {
			k := racked(of.gpus, 40<<10)
			err := refused(c, data, io.Discard, k.with)
			if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), of.here) ||
				!strings.Contains(err.Error(), "1 MB of 1 MB are free") {
				t.Fatalf("exit %d, %v", fault.ExitCode(err), err)
			}
			for _, d := range k.made {
				if d.memory || !d.closed {
					t.Errorf("memory was taken: %t, closed: %t", d.memory, d.closed)
				}
			}
			if _, err := os.Stat(c.Out); err == nil {
				t.Error("a run folder is left")
			}
		})
	}
	c.ForceMemory = true
	var warned bytes.Buffer
	if err := refused(c, data, &warned, racked(1, 40<<10).with); err == nil ||
		!strings.Contains(err.Error(), "too little memory for this run") ||
		!strings.Contains(warned.String(), "warning: GPU 0 of ") {
		t.Errorf("%v, %q", err, warned.String())
	}
}

// The estimate of GPU memory includes workspaces and plans of gathers, and is never below the
// actual peak. It is at most a third more on these graphs: their arrays are small compared
// with rounding, and the number of pre-aggregated rows is unknown.
func TestGPUForecast(t *testing.T) {
	t.Parallel()
	planted, sparse, hubs := generated(t, true), bagOf(t, 3300), stars(t)
	applied := func(c *Config, intervals int) { c.GraphWork, c.Intervals = config.GraphCPU, intervals }
	for name, of := range hosttest.Share(t, 5, map[string]struct {
		ranks int
		data  string
		set   func(c *Config)
	}{
		"gcn":                 {3, planted, func(c *Config) {}},
		"gcn, ÂX":             {1, planted, func(c *Config) { c.InputDropout, c.CacheInput = 0, "on" }},
		"sign, powers":        {2, planted, func(c *Config) { c.Model, c.InputDropout, c.CacheInput = "sign", 0, "on" }},
		"gat":                 {3, planted, func(c *Config) { c.Model, c.Heads = "gat", 2 }},
		"gcnii":               {2, planted, func(c *Config) { c.Model = "gcnii" }},
		"bf16, sage":          {2, planted, func(c *Config) { c.Model, c.Gather = "sage", "bf16" }},
		"sparse, mlp":         {1, sparse, func(c *Config) { c.Model, c.CacheInput = "mlp", "off" }},
		"sparse, intervals":   {1, sparse, func(c *Config) { c.Model, c.CacheInput, c.Intervals = "sage", "off", 3 }},
		"recompute":           {1, planted, func(c *Config) { c.Recompute, c.Layers, c.Model = true, 4, "gin" }},
		"async":               {2, planted, func(c *Config) { c.Mode = "async" }},
		"intervals":           {1, planted, func(c *Config) { c.Intervals = 6 }},
		"hubs":                {2, hubs, func(c *Config) { c.Refresh, c.PreAggregate = "previous:none", "off" }},
		"hubs, gat":           {1, hubs, func(c *Config) { c.Model, c.Hidden = "gat", 4 }},
		"sums":                {2, hubs, func(c *Config) { c.PreAggregate, c.CacheInput = "on", "off" }},
		"int8+ef":             {3, planted, func(c *Config) { c.Codec, c.Hidden = "int8+ef", 128 }},
		"never":               {3, planted, func(c *Config) { c.Refresh = "never" }},
		"never, measured":     {2, planted, func(c *Config) { c.Refresh, c.MeasureStaleness = "never", 1 }},
		"free":                {3, planted, func(c *Config) { c.Mode = "free" }},
		"rounds":              {3, planted, func(c *Config) { c.LocalEpochs, c.Refresh = 1, "never" }},
		"tensor work":         {2, planted, func(c *Config) { applied(c, 3) }},
		"tensor work, appnp":  {1, planted, func(c *Config) { applied(c, 3); c.Model, c.Hops = "appnp", 2 }},
		"tensor work, ÂX":     {1, planted, func(c *Config) { applied(c, 2); c.InputDropout, c.CacheInput = 0, "on" }},
		"tensor work, gat":    {1, planted, func(c *Config) { applied(c, 7); c.Model, c.Recompute = "gat", true }},
		"tensor work, async":  {2, planted, func(c *Config) { applied(c, 3); c.Mode = "async" }},
		"tensor work, sparse": {1, sparse, func(c *Config) { applied(c, 4); c.Model, c.CacheInput = "sage", "off" }},
	}) {
		t.Run(name, func(t *testing.T) {
			c := onGPUs(t, of.ranks, 0)
			c.Epochs = 1
			of.set(&c)
			checkGPUEstimate(t, c, of.data)
		})
	}
}

func checkGPUEstimate(t *testing.T, c Config, data string) {
	taken := make([]int64, c.Ranks)
	inWorld(t, c, data, func(r *member) { r.gpus = weighed(racked(1, 0), &taken[r.world.Rank()]) }, func(r *member) error {
		r.cfg.Initializer = model.Spec{Kind: c.Model}.Initializer("")
		b, err := r.stages()
		if err != nil {
			return err
		}
		f, _, err := forecast.Of(b.cfg, b.meta, b.Graph, b.Servers, b.net.CacheInput)
		compareGPU(t, b.joined, f, taken[b.rank])
		return err
	})
}

// compareGPU compares a rank's peak with a forecast.
func compareGPU(t *testing.T, r *joined, f *forecast.Forecast, taken int64) {
	estimated := r.deviceBytes(f)
	t.Logf("rank %d: estimated %d bytes, taken %d, %+.1f %%", r.rank, estimated, taken, 100*float64(estimated)/float64(taken)-100)
	if taken == 0 || estimated < taken || estimated > taken*4/3 {
		t.Errorf("rank %d: estimated %d bytes, taken %d", r.rank, estimated, taken)
	}
}

// weighed returns a rack's GPUs; *most has their peak memory.
func weighed(k *rack, most *int64) gpus {
	g := k.gpus()
	open := g.open
	g.open = func(n int) (device.Device, error) {
		d, err := open(n)
		return &meter{Device: d, most: most, sizes: map[device.Ptr]int{}}, err
	}
	return g
}

// stars returns a graph of 2,000 vertices with three hubs, each of which has an edge from and
// to most of the others.
func stars(t *testing.T) string {
	t.Helper()
	c := randomContent(2000, 7)
	pairs := c.Edges.(graph.EdgePairs)
	for v := uint32(3); v < 2000; v++ {
		for hub := range uint32(3) {
			if v%7 > hub {
				pairs = append(pairs, v, hub)
			}
		}
	}
	c.Edges = pairs
	return write(t, c)
}

// meter is a device that records its peak memory in bytes.
type meter struct {
	device.Device
	mu    sync.Mutex
	sizes map[device.Ptr]int
	now   int64
	most  *int64
}

func (d *meter) Alloc(bytes int) (device.Ptr, error) {
	p, err := d.Device.Alloc(bytes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes[p] = bytes
	d.now += int64(bytes)
	*d.most = max(*d.most, d.now)
	return p, err
}

func (d *meter) Free(p device.Ptr) error {
	d.mu.Lock()
	d.now -= int64(d.sizes[p])
	d.mu.Unlock()
	return d.Device.Free(p)
}
