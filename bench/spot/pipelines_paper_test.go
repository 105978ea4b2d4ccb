package spot

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/ranks/schedule/pipeline"
)

func networks(t *testing.T) []piped {
	t.Helper()
	list, err := Options{}.modelled()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Table 3.5: the fitted cells are within 0.1 points of the paper's, and the cells of eager backward passes,
// which are not fitted, within 3 points.
func TestTable35(t *testing.T) {
	for _, p := range networks(t) {
		for k, s := range settings {
			limit := 0.1
			if s.redundancy == pipeline.EagerForwardBackward {
				limit = 3
			}
			if x := p.overhead(s.redundancy); math.Abs(x-p.paper[k]) > limit {
				t.Errorf("%s, %s: %.2f %%, in the paper %.2f %%", p.name, s.name, x, p.paper[k])
			}
		}
	}
}

// Figure 3.13: the pause with eager forward passes is at least 30 % shorter: "lazy FRC reduces pause time by
// ~35%" (§3.6.4; the text must mean eager FRC, whose pauses are the shorter ones by §3.5.1).
func TestFigure313(t *testing.T) {
	for _, p := range networks(t) {
		var pauses []float64
		for _, s := range settings {
			pauses = append(pauses, p.pause(s.redundancy))
		}
		if shorter := 1 - pauses[1]/pauses[0]; shorter < 0.3 || shorter > 0.4 || pauses[2] >= pauses[1] {
			t.Errorf("%s: pauses %.3f, %.1f %% shorter", p.name, pauses, 100*shorter)
		}
	}
}

// "for the first 4 stages, the bubble time is long enough to fit the entire FRC [...]. For the last 4 stages, the
// bubble time is shorter than the forward computation time—it can still cover ~60% of its FRC" (§3.9.1).
func TestFigure314(t *testing.T) {
	_, bubble, redundant := networks(t)[0].bubbles()
	mean := 0.0
	for s := range bubble {
		if (bubble[s] >= redundant[s]) != (s < 4) {
			t.Errorf("stage %d: bubble %.3f, redundant forward pass %.3f", s+1, bubble[s], redundant[s])
		}
		if s >= 4 {
			mean += bubble[s] / redundant[s] / 4
		}
	}
	if mean < 0.55 || mean > 0.65 {
		t.Errorf("the bubbles of the last 4 stages cover %.2f", mean)
	}
}

// "the differences between these two configurations are quite low (i.e., usually less than 5%)" (§3.9.2). The
// relative throughput is within 0.01 of the paper's.
func TestTable36(t *testing.T) {
	for _, n := range crossZone {
		one, zones := n.throughput(clusterRate), n.throughput(spreadRate)
		if math.Abs(one-n.cluster) > 1e-6*n.cluster || zones < 0.95*one || zones >= one || math.Abs(zones/one-n.spread/n.cluster) > 0.01 {
			t.Errorf("%s: %.3f and %.3f samples/s, in the paper %.3f and %.3f", n.name, one, zones, n.cluster, n.spread)
		}
	}
}

// Table 3.7: the throughput of Bamboo falls with the losses, and its value stays above that on demand. At 10 %
// throughput, cost and value are within 10 % of the paper's; at higher rates the simulation overestimates.
func TestTable37(t *testing.T) {
	o := options()
	for _, n := range table37 {
		before := math.Inf(1)
		for k, rate := range segments {
			in := n.data(redundantWorkers)
			in.Copies = dataOverhead
			r := o.replay(in, "siafu-copies", rate)
			if r.Throughput >= before || r.Value < n.demand/(workers*3.06) {
				t.Errorf("%s at %g: %+v", n.name, rate, r)
			}
			if before = r.Throughput; k == 0 && !(near(r.Throughput, n.bamboo[k], 0.1) && near(r.DollarsPerHour, n.bambooDollars[k], 0.1) &&
				near(r.Value, n.bamboo[k]/n.bambooDollars[k], 0.1)) {
				t.Errorf("%s at %g: %+v, in the paper %+v", n.name, rate, r, n)
			}
			// "the training cost remains unchanged" with checkpoints (§3.9.3).
			if c := o.always(n.data(workers), rate); !near(c.DollarsPerHour, n.checkpointDollars, 0.01) {
				t.Errorf("%s at %g: checkpoints cost $%.2f an hour", n.name, rate, c.DollarsPerHour)
			}
		}
	}
}

// Measured times are a column of table 3.5 and figure 3.13 and rows of figure 3.14: six layers of one second in
// two stages are as two layers of three seconds.
func TestTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times.json")
	write := func(text string) Options {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return Options{Runs: 1, Zones: 1, Only: []string{"table3.5", "figure3.13", "figure3.14"}, Times: path}
	}
	rows := func(text string) string {
		var out bytes.Buffer
		if err := write(text).Run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	six := rows(`{"name": "deep", "stages": 2, "microbatches": 4, "forward": [1,1,1,1,1,1], "backward": [2,2,2,2,2,2], "transfer": 0.5}`)
	two := rows(`{"name": "deep", "stages": 2, "microbatches": 4, "forward": [3,3], "backward": [6,6], "transfer": 0.5}`)
	if six != two || strings.Count(six, "deep, measured layers") != 2 || !strings.Contains(six, "\ndeep ") {
		t.Errorf("%s\n%s", six, two)
	}
	for text, want := range map[string]string{
		`{`:                          "unexpected",
		`{"speed": 1}`:               "speed",
		`{"stages": 2}`:              "no name",
		`{"name": "x", "stages": 2}`: "stages=2 for 0 layers",
		`{"name": "x", "stages": 2, "forward": [1,1]}`:                                        "microbatches=0",
		`{"name": "x", "stages": 2, "microbatches": 1, "forward": [1,1]}`:                     "backward 0",
		`{"name": "x", "stages": 2, "microbatches": 1, "forward": [1,-1], "backward": [1,1]}`: "a time of -1",
	} {
		if err := write(text).Run(t.Context(), &bytes.Buffer{}); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := (Options{Runs: 1, Zones: 1, Only: []string{"table3.5"}, Times: path + ".missing"}).Run(t.Context(),
		&bytes.Buffer{}); fault.KindOf(err) != fault.Missing {
		t.Error(err)
	}
}
