package spot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// checkRun checks that each second belongs to one phase.
func checkRun(t *testing.T, name string, r Run) {
	t.Helper()
	sum := 0.0
	for phase, x := range r.Fractions {
		if sum += x; x < -1e-9 || math.IsNaN(x) {
			t.Errorf("%s: a fraction of %g is %s", name, x, phase)
		}
	}
	if math.Abs(sum-1) > 1e-9 && r.Hours > 0 {
		t.Errorf("%s: the fractions sum to %.12f", name, sum)
	}
}

// small returns inputs of two pipelines of four machines without pauses at the begin.
func small() Inputs {
	in, err := Named("bert")
	if err != nil {
		panic(err)
	}
	in.Depth, in.MinDepth, in.Replicas, in.Startup = 4, 2, 2, 0
	return in
}

// run replays a trace.
func run(t *testing.T, in Inputs, system, trace string) Run {
	t.Helper()
	list, err := Select([]string{system})
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadTrace(write(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	r := Simulate(in, Source{Trace: read}, list[0].New())
	checkRun(t, system, r)
	return r
}

// begin returns the lines of eight machines at the begin of a trace. With two zones, the pipelines
// are 1 2 3 4 and 5 6 7 8.
func begin() string {
	var text strings.Builder
	for k := range 8 {
		fmt.Fprintf(&text, "0,add,n%d@%d\n", k+1, k%2)
	}
	return text.String()
}

const end = "7200000,add,last@0\n"

// For all systems and rates, each second belongs to one phase, and the cost is that of the
// machines.
func TestConservation(t *testing.T) {
	for _, e := range Systems() {
		for _, stall := range []float64{0, 20} {
			for _, rate := range []float64{0, 0.1, 0.5, 3} {
				in, _ := Named("bert")
				in.CheckpointStall = stall
				o := options()
				o.Machines, o.Hours, o.Rate = in.Machines(), 24, rate
				r := Simulate(in, Source{Trace: generate(t, o)}, e.New())
				checkRun(t, e.Name, r)
				if math.Abs(r.DollarsPerHour-in.Price*r.Machines) > 1e-9 || math.Abs(r.Value*r.DollarsPerHour-r.Throughput) > 1e-9 {
					t.Errorf("%s: %+v", e.Name, r)
				}
				if full := in.Rate(in.Depth, float64(in.Replicas)); r.Samples > full*24*3600 {
					t.Errorf("%s trains %g samples, faster than without losses", e.Name, r.Samples)
				}
				if stall > 0 && r.Fractions["useful"] > 0.5 && r.Fractions["saving"] == 0 {
					t.Errorf("%s: checkpoints cost nothing", e.Name)
				}
			}
		}
	}
}

// Without losses all systems have the same throughput, less redundant computation and start.
func TestNoLosses(t *testing.T) {
	in, _ := Named("bert")
	o := options()
	o.Machines, o.Hours, o.Rate = in.Machines(), 10, 0
	trace := generate(t, o)
	for _, e := range Systems() {
		want := in.Batch / in.Iteration * (36000 - in.Startup) / 36000
		if e.Name == "bamboo" {
			want /= 1 + in.Redundancy
		}
		if r := Simulate(in, Source{Trace: trace}, e.New()); math.Abs(r.Throughput/want-1) > 1e-9 ||
			r.Fatal+r.Restarts+r.Reconfigurations != 0 {
			t.Errorf("%s: %.6f samples/s, expected %.6f: %+v", e.Name, r.Throughput, want, r)
		}
	}
}

// More losses give less useful work. The means of 60 days have standard errors below 1 %; the
// tolerance is 2 %.
func TestMoreLosses(t *testing.T) {
	in, _ := Named("bert")
	for _, e := range Systems() {
		before := math.Inf(1)
		for _, rate := range []float64{0.01, 0.1, 0.3, 0.6} {
			r := Repeat(in, e, Random{rate, 3, 24, 1, 60})
			if r.Throughput > before*1.02 {
				t.Errorf("%s: %.2f samples/s at a rate of %g, %.2f before", e.Name, r.Throughput, rate, before)
			}
			before = r.Throughput
		}
	}
}

// A fixed seed gives the same bytes, another seed others.
func TestSeeds(t *testing.T) {
	text := func(seed uint64) string {
		var out bytes.Buffer
		o := SimulateOptions{Rate: 0.3, Hours: 12, Runs: 2, Zones: 3, Seed: seed, Network: "bert", JSON: true}
		if err := o.Print(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first, again, other := text(1), text(1), text(2)
	if first != again || first == other {
		t.Error("results do not depend on the seed alone")
	}
	var r result
	if err := json.Unmarshal([]byte(first), &r); err != nil || len(r.Runs) != len(Systems()) || r.Inputs.Depth != 12 ||
		r.Runs[0].Fractions["useful"] == 0 {
		t.Errorf("%v %+v", err, r)
	}
}

// Redundancy of BERT's Bamboo ("without wasting prior computations", §3.1): a loss costs the pause
// and, while its neighbour runs two stages, the factor Merged.
func TestOneLoss(t *testing.T) {
	in := small()
	in.Risk = 1
	r := run(t, in, "bamboo", begin()+"3600000,remove,n2@1\n"+end)
	rate := in.Rate(4, 2) / (1 + in.Redundancy)
	want := rate*3600 + rate/in.Merged*(3600-in.Pause)
	if r.Fatal != 0 || r.Restarts != 0 || r.Fractions["wasted"] != 0 || math.Abs(r.Samples/want-1) > 1e-9 {
		t.Errorf("%+v, expected %g samples", r, want)
	}
	// At a risk of 5 % the pipelines are rebalanced: one of four machines is left.
	in.Risk = 0.05
	if r := run(t, in, "bamboo", begin()+"3600000,remove,n2@1\n"+end); r.Reconfigurations != 1 || r.Fatal != 0 {
		t.Errorf("%+v", r)
	}
}

// A loss after a checkpoint wastes the work since the begin of the last complete checkpoint:
// checkpoints begin every 600 s and are complete after 30 s.
func TestRollback(t *testing.T) {
	in := small()
	for seconds, wasted := range map[float64]float64{3600: 600, 3629: 629, 3631: 31, 29: 29, 31: 31} {
		r := run(t, in, "checkpoint", begin()+fmt.Sprintf("%.0f,remove,n2@1\n", seconds*1000)+end)
		if got := r.Fractions["wasted"] * 7200; math.Abs(got-wasted) > 1e-6 || r.Restarts != 1 {
			t.Errorf("a loss at %g s wastes %.3f s, expected %g: %+v", seconds, got, wasted, r)
		}
	}
	// Many short periods are skipped, not stepped over.
	in.CheckpointEvery, in.CheckpointTime = 0.001, 0
	if r := run(t, in, "checkpoint", begin()+"3600000,remove,n2@1\n"+end); r.Fractions["wasted"]*7200 > 0.003 {
		t.Errorf("%+v", r)
	}
}

// What each system does after the loss of one machine, and of a whole zone.
func TestReactions(t *testing.T) {
	one, zone := begin()+"3600500,remove,n2@1\n"+end,
		begin()+"3600500,remove,n2@1\n3600500,remove,n4@1\n3600500,remove,n6@1\n3600500,remove,n8@1\n"+end
	in := small()
	in.CheckpointTime, in.Parts = 300, 1 // longer than the notice
	half := in.Rate(4, 1)
	partial := math.Mod(3600.5, in.Iteration) // of the iteration in progress
	for _, c := range []struct {
		system, trace   string
		fatal, restarts float64
		rate            float64 // afterwards
		wasted          float64 // seconds; checkpoints begin every 600 s and are complete after 300 s
	}{
		{"checkpoint", one, 0, 1, half, 600.5},
		{"dropping", one, 0, 0, half, 0},
		{"dropping", zone, 1, 1, half, -1},
		{"migration", one, 1, 1, half, 600.5},
		{"varuna", one, 0, 1, in.Rate(3, 2), 600.5},
		{"oobleck", one, 0, 0, (in.Rate(3, 2) + in.Rate(4, 2)) / 2, partial},
		{"recycle", one, 0, 0, in.Rate(4, 2) * (22 + 3) / 44, partial},
		{"parcae", one, 0, 0, half, partial},
		{"siafu-copies", one, 0, 0, in.Rate(4, 2) / 2, partial},
		{"siafu-copies", zone, 0, 0, in.Rate(4, 2) / 2, partial},
		{"siafu-restart", one, 0, 1, in.Rate(4, 2) / 2, partial},
	} {
		r := run(t, in, c.system, c.trace)
		if r.Fatal != c.fatal || r.Restarts != c.restarts {
			t.Errorf("%s: %g fatal failures, %g restarts: %+v", c.system, r.Fatal, r.Restarts, r)
		}
		useful := r.Fractions["useful"] * 7200
		before := min(useful, 3600.5-r.Fractions["wasted"]*7200)
		want := in.Rate(4, 2)*before + c.rate*(useful-before)
		if c.wasted < 0 {
			continue // trains more slowly before the restart, too
		}
		if got := r.Fractions["wasted"] * 7200; math.Abs(got-c.wasted) > 1e-6*3600 {
			t.Errorf("%s: wastes %.3f s, expected %.3f", c.system, got, c.wasted)
		}
		if math.Abs(r.Samples/want-1) > 1e-3 {
			t.Errorf("%s: %.0f samples, expected %.0f", c.system, r.Samples, want)
		}
	}
	// Machines on standby take over within the notice.
	in.CheckpointTime = 30
	spare := begin() + "0,add,spare@1\n3600500,remove,n2@1\n" + end
	if r := run(t, in, "migration", spare); r.Fatal+r.Restarts != 0 || math.Abs(r.Fractions["recovering"]*7200-in.Move) > 1e-6 {
		t.Errorf("%+v", r)
	}
	in.Notice = 10 // less than Move
	if r := run(t, in, "migration", spare); r.Fatal != 1 || r.Fractions["wasted"] == 0 {
		t.Errorf("%+v", r)
	}
}

// "move before the loss": with many losses in the past, Parcae plans fewer pipelines and so more
// machines on standby; without losses it plans all.
func TestLiveput(t *testing.T) {
	in := small()
	in.Move, in.Reconfigure = 5, 100 // a loss beyond the standby machines is expensive
	c := &Cluster{Inputs: in}
	for range 9 {
		c.Ready = append(c.Ready, &Machine{})
	}
	s := &parcae{}
	if n := s.plan(c); n != 2 {
		t.Errorf("%d pipelines without losses", n)
	}
	for minute := range 100 {
		s.losses, s.next = 2, 60*float64(minute)
		c.Now = s.next
		s.predict(c)
	}
	if n := s.plan(c); math.Abs(s.expected-2) > 0.01 || n != 1 {
		t.Errorf("%d pipelines with %.2f losses a minute", n, s.expected)
	}
}

// Training waits while machines are too few, and continues after a restart.
func TestWaiting(t *testing.T) {
	text := begin()
	for k := range 8 {
		text += fmt.Sprintf("3600000,remove,n%d@%d\n", k+1, k%2)
	}
	for k := range 8 {
		text += fmt.Sprintf("5400000,add,m%d@%d\n", k, k%2)
	}
	in := small()
	for _, e := range Systems() {
		r := run(t, in, e.Name, text+end)
		if waiting := r.Fractions["waiting"] * 7200; waiting < 1700 || waiting > 1800 || r.Restarts < 1 || r.Samples == 0 {
			t.Errorf("%s: waits %.0f s: %+v", e.Name, waiting, r)
		}
	}
}

// Inputs come from the network, the file and the flags, and invalid ones are refused.
func TestInputs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(path, []byte(`{"iteration": 2.5, "depth": 6, "min_depth": 6}`), 0o666); err != nil {
		t.Fatal(err)
	}
	depth := 3
	in, _, err := SimulateOptions{Network: "vgg", Inputs: path, Flags: Flags{Depth: &depth}}.inputs()
	if err != nil || in.Iteration != 2.5 || in.Depth != 3 || in.MinDepth != 3 || in.Batch != 384 {
		t.Errorf("%v %+v", err, in)
	}
	for text, want := range map[string]string{`{"speed": 1}`: "speed", `{"depth": 0}`: ": depth=0; set 1", `{`: "unexpected",
		`{} {}`: "after", `{"merged": 0.5}`: "merged=0.5; set 1"} {
		bad := filepath.Join(t.TempDir(), "bad.json")
		if err := os.WriteFile(bad, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := in.ReadInputs(bad); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name, o := range map[string]SimulateOptions{
		"network": {Network: "gpt5"}, "systems": {Network: "bert", Systems: []string{"magic"}},
		"rate": {Network: "bert", Rate: 2, Runs: 1, Zones: 1, Hours: 1},
		"runs": {Network: "bert", Rate: 0.1, Zones: 1, Hours: 1},
	} {
		if err := o.Print(&bytes.Buffer{}); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The help of simulate lists all systems and networks.
func TestHelpLists(t *testing.T) {
	help := func(field string) string {
		f, _ := reflect.TypeFor[SimulateOptions]().FieldByName(field)
		return f.Tag.Get("help")
	}
	if want := "Values: " + strings.Join(SystemNames(), ", ") + "."; !strings.Contains(help("Systems"), want) {
		t.Errorf("%q lacks %q", help("Systems"), want)
	}
	for _, n := range Networks() {
		if !strings.Contains(help("Network"), n.Name) {
			t.Errorf("%q lacks %s", help("Network"), n.Name)
		}
	}
	// Each flag has the name of an input, by which it replaces the input.
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Flags]()) {
		if in, found := reflect.TypeFor[Inputs]().FieldByName(f.Name); !found || reflect.PointerTo(in.Type) != f.Type {
			t.Errorf("%s is no input", f.Name)
		}
	}
}
