package dorylus

import (
	"math"
	"strings"
	"testing"

	"siafu/graph"
)

// deviceAt returns the work on GPUs of a paper's graph with changed sizes.
func deviceAt(t *testing.T, network string, change func(*paperGraph, *Options)) *device {
	t.Helper()
	p, o := table1[2], Options{Ranks: 2, Hidden: 64, GhostPower: 0.5}
	o.Partitioner = "hash"
	meta := &graph.Meta{Vertices: 92e3, Edges: 3139e3, FeatureDim: p.features, Classes: p.labels, Train: 46e3, FeatureKind: "dense"}
	if change != nil {
		change(&p, &o)
	}
	d, err := (&bench{Options: o}).deviceOf(&graphOf{paperGraph: &p, meta: meta}, network, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// An epoch on GPUs takes longer on a larger graph, with wider layers, on a slower GPU and on fewer
// GPUs, and more memory on fewer GPUs.
func TestGPUIsMonotone(t *testing.T) {
	v100 := gpus["p3.2xlarge"]
	for _, network := range []string{"gcn", "gat"} {
		d := deviceAt(t, network, nil)
		base := d.seconds("", v100, 8)
		for name, more := range map[string]float64{
			"vertices":    deviceAt(t, network, func(p *paperGraph, _ *Options) { p.vertices *= 2 }).seconds("", v100, 8),
			"edges":       deviceAt(t, network, func(p *paperGraph, _ *Options) { p.edges *= 2 }).seconds("", v100, 8),
			"hidden":      deviceAt(t, network, func(_ *paperGraph, o *Options) { o.Hidden *= 2 }).seconds("", v100, 8),
			"a K80":       d.seconds("", gpus["p2.xlarge"], 8),
			"fewer":       d.seconds("", v100, 4),
			"less memory": d.seconds("", gpu{"", v100.bandwidth / 2, v100.flops, v100.bytes}, 8),
			"less flops":  d.seconds("", gpu{"", v100.bandwidth, v100.flops / 1000, v100.bytes}, 8),
		} {
			if !(more > base) {
				t.Errorf("%s, %s: %g s, not more than %g", network, name, more, base)
			}
		}
		sum := 0.0
		for _, task := range []string{"GA", "∇GA", "AV", "∇AV", "loss"} {
			sum += d.seconds(task, v100, 8)
		}
		if math.Abs(sum/base-1) > 1e-12 { // sums in another order
			t.Errorf("%s: tasks take %g s, the epoch %g", network, sum, base)
		}
		for n := 1; n < 16; n *= 2 {
			if more, less := d.memory(n), d.memory(2*n); !(more > less) {
				t.Errorf("%s: %g bytes on %d GPUs, %g on twice as many", network, more, n, less)
			}
		}
	}
}

// A gather of 64 columns along every edge and self loop reads 8 + 4·64 bytes, and each row of the
// result costs 24 + 4·64 bytes, at 900 GB/s.
func TestGatherOfTheRoofline(t *testing.T) {
	d := deviceAt(t, "gcn", func(p *paperGraph, o *Options) { o.Train = []string{"--cache-input", "off", "--order", "apply-first"} })
	e, n := 313.9e6+9.2e6, 9.2e6
	widths := []float64{64, 25}
	want := 0.0
	for _, w := range widths {
		want += (e*(8+4*w) + n*(24+4*w)) / 900e9
	}
	near(t, "GA", d.seconds("GA", gpus["p3.2xlarge"], 1), want, 1e-9)
}

// "DGL (non-sampling) uses a single V100 GPU and could not scale to Amazon." (figure 9)
func TestAmazonExceedsOneGPU(t *testing.T) {
	d := deviceAt(t, "gcn", nil)
	if why := d.shortage(cluster{"p3.2xlarge", 1}); !strings.Contains(why, "a V100 of p3.2xlarge (1) has 16 GB, and an epoch needs ") {
		t.Errorf("%q", why)
	}
	if why := d.shortage(cluster{"p3.2xlarge", 8}); why != "" {
		t.Error(why)
	}
}

// A cell that exceeds the memory of a GPU is a dash with the reason, printed once.
func TestTooLargeForGPUs(t *testing.T) {
	wide := func(o *Options) { o.Hidden = 4096 }
	text := reproduce(t, defaultRunner(), wide, "table4")
	has(t, text, "gcn amazon GPU only (not run) 16 - - - - - 385.3 2.62",
		"-, modelled: a V100 of p3.2xlarge (8) has 16 GB, and an epoch needs ")
	if n := strings.Count(text, "a V100 of p3.2xlarge (8)"); n != 1 {
		t.Errorf("the reason is printed %d times", n)
	}
}

// Flags that GPUs do not take leave a dash with the reason, and the other numbers.
func TestFlagsGPUsDoNotTake(t *testing.T) {
	flags := func(o *Options) { o.Train = []string{"--batch", "history:8"} }
	has(t, reproduce(t, defaultRunner(), flags, "table4"), "gcn amazon GPU only (not run) 16 - - - - - 385.3 2.62",
		"-, modelled: train: --batch=history:8 with --tensor=cuda; leave --tensor out")
	has(t, reproduce(t, defaultRunner(), flags, "table3"), "gcn amazon c5n.2xlarge (8) p3.2xlarge (8) 3.456 24.48 168 92003.4 4382 - 16")
}

// In the model a V100 has more value than a K80: 900 to 240 GB/s at 3.06 to 0.90 dollars an hour.
func TestTable2OfGPUs(t *testing.T) {
	has(t, reproduce(t, defaultRunner(), nil, "table2"), "GPU amazon p2.xlarge (8) 7.200 1.00 ", "GPU amazon p3.2xlarge (8) 24.480 4.93 ")
}
