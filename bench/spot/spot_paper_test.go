package spot

import (
	"math"
	"testing"

	"siafu/slurm/spot"
)

// options repeat simulations less often than the bench, to take seconds. The seeds are fixed.
func options() Options { return Options{Runs: 200, Zones: 3, Seed: 1} }

// near reports whether a and b differ by at most a fraction of b.
func near(a, b, fraction float64) bool { return math.Abs(a-b) <= fraction*b }

// Table 3.3: the mean value is within 10 % of the paper's, and the number of fatal failures within
// a factor of 2. Machines and cost are within 3 %, and preemptions, intervals and lifetimes within
// 10 %: these do not depend on the fitted rate.
func TestTable33(t *testing.T) {
	in, _ := bert()
	for _, p := range table33 {
		o := options()
		if p.probability < 0.25 {
			o.Runs = 1000 // fatal failures are rare
		}
		r := o.repeat(in, p.probability)
		if !near(r.Value, p.value, 0.1) || !near(r.Throughput, p.throughput, 0.1) {
			t.Errorf("%g: value %.2f and %.2f samples/s, in the paper %.2f and %.2f", p.probability, r.Value,
				r.Throughput, p.value, p.throughput)
		}
		if r.Fatal < p.fatal/2 || r.Fatal > 2*p.fatal {
			t.Errorf("%g: %.2f fatal failures, in the paper %.2f", p.probability, r.Fatal, p.fatal)
		}
		if !near(r.Machines, p.nodes, 0.03) || !near(r.DollarsPerHour, p.dollars, 0.03) {
			t.Errorf("%g: %.2f machines for $%.2f, in the paper %.2f for $%.2f", p.probability, r.Machines,
				r.DollarsPerHour, p.nodes, p.dollars)
		}
		if !near(r.Lost, p.preemptions, 0.1) || !near(r.Lifetime, p.lifetime, 0.1) || !near(r.Interval, p.interval, 0.1) {
			t.Errorf("%g: %.2f losses, one in %.2f h, life %.2f h", p.probability, r.Lost, r.Interval, r.Lifetime)
		}
		// "regardless of the preemption probability, the value of Bamboo [...] is constantly higher than
		// that of training with on-demand instances (which is 1.1)" (§3.6.2).
		if r.Value <= 1.1 {
			t.Errorf("%g: value %.2f", p.probability, r.Value)
		}
	}
}

// Table 3.4: the value is within 10 % of the paper's. "using P_h actually decreases both throughput
// (compared to 84 under P in Table 3.2) and value (due to significantly increased costs)" (§3.6.2).
func TestTable34(t *testing.T) {
	usual, long := bert()
	o := options()
	o.Runs = 50
	for _, p := range table34 {
		r := o.repeat(long, p.probability)
		if !near(r.Value, p.value, 0.1) || !near(r.Throughput, p.throughput, 0.1) || !near(r.DollarsPerHour, p.dollars, 0.03) {
			t.Errorf("%g: value %.3f, %.2f samples/s, $%.2f; in the paper %.2f, %.2f, $%.2f", p.probability, r.Value, r.Throughput,
				r.DollarsPerHour, p.value, p.throughput, p.dollars)
		}
		if u := o.repeat(usual, p.probability); u.Value <= r.Value || u.Throughput <= r.Throughput || u.DollarsPerHour >= r.DollarsPerHour {
			t.Errorf("%g: %+v, with a long pipeline %+v", p.probability, u, r)
		}
	}
}

// "the checkpointing-based approach spent only 23% on actual training, while Bamboo increases this
// percentage to 84%" (§3.6.3), and "the restarting overheads [...] and the wasted computations take
// 77% of the training time" (§3.3). The paper's trace has neither number nor file for its additions;
// with the losses alone, ours are within ten points of the day.
func TestFigure33(t *testing.T) {
	o := options()
	c, b := o.replay(published64(), "checkpoint", rate64), o.replay(published64(), "bamboo", rate64)
	if x := c.Fractions["useful"]; math.Abs(x-0.23) > 0.1 {
		t.Errorf("checkpoints: %.3f of the time is useful", x)
	}
	if x := c.Fractions["restarting"] + c.Fractions["wasted"]; math.Abs(x-0.77) > 0.1 {
		t.Errorf("checkpoints: %.3f of the time is lost", x)
	}
	if x := b.Fractions["useful"]; math.Abs(x-0.84) > 0.1 {
		t.Errorf("Bamboo: %.3f of the time is useful", x)
	}
}

// "even for the preemption rate of 0.5, there are only 5.98 fatal failures that would require
// checkpointing/restart under Bamboo. On the contrary, a checkpointing-based approach would need to
// restart the pipeline for every one of the 709.83 preemptions" (§3.6.3). Losses of machines on
// standby need no restart, and machines that join need one.
func TestRestarts(t *testing.T) {
	in, _ := bert()
	in.Samples = 0
	random := spot.Random{Rate: 0.5, Zones: 3, Hours: 24, Seed: 1, Runs: 20}
	b, c := spot.Repeat(in, entry("bamboo"), random), spot.Repeat(in, entry("checkpoint"), random)
	if b.Lost != c.Lost || b.Fatal > 0.02*b.Lost || c.Restarts < 0.8*c.Lost || c.Throughput > b.Throughput/2 {
		t.Errorf("Bamboo %+v\ncheckpoints %+v", b, c)
	}
}

// "Of these 127 timestamps, only 7 see preemptions from multiple zones" (§3.3).
func TestFigure32(t *testing.T) {
	o, one, moments := options(), 0, 0
	for k := range 50 {
		s := o.trace(losses(64, 127.0/24*3/64), k).Statistics()
		one, moments = one+s.OneZone, moments+s.Moments
	}
	// About 6,350 moments: four standard deviations are 0.012.
	if x := float64(one) / float64(moments); math.Abs(x-120.0/127) > 0.012 {
		t.Errorf("%.4f of %d moments are in one zone", x, moments)
	}
	if !near(float64(moments)/50, 127, 0.06) {
		t.Errorf("%.1f moments in a day", float64(moments)/50)
	}
}

// "most preemptions can be quickly recovered without introducing much overhead. The higher the
// preemption probability, the less the active instances [...] However, the cost is reduced also
// proportionally" (§3.6.2): for all networks of table 3.2 cost and throughput fall together, and
// the cost is within 10 % of the paper's.
func TestTable32(t *testing.T) {
	o := options()
	for _, n := range spot.Networks() {
		before := spot.Run{Throughput: math.Inf(1), DollarsPerHour: math.Inf(1)}
		for k, rate := range segments {
			r := o.replay(network(n.Name), "bamboo", rate)
			if r.Throughput >= before.Throughput || r.DollarsPerHour >= before.DollarsPerHour ||
				!near(r.DollarsPerHour, n.BambooCost[k], 0.1) {
				t.Errorf("%s at %g: %+v", n.Name, rate, r)
			}
			if r.Value < n.DemandS/n.DemandDollar {
				t.Errorf("%s at %g: value %.2f is below that on demand", n.Name, rate, r.Value)
			}
			before = r
		}
	}
}

// Figure 3.11: in each hour of a day with 10 % of losses per hour, the value of BERT and VGG is above
// that on demand. An hour is complete: the views are 3,600 s apart.
func TestFigure311(t *testing.T) {
	for _, n := range spot.Networks() {
		if n.Name != "bert" && n.Name != "vgg" {
			continue
		}
		hours := options().day(network(n.Name))
		if len(hours) != 25 {
			t.Errorf("%s: %d hours", n.Name, len(hours)-1)
		}
		for k := 1; k < len(hours); k++ {
			a, b := hours[k-1], hours[k]
			if value := (b.Samples - a.Samples) / 3600 / (b.Dollars - a.Dollars); b.Seconds != 3600*float64(k) ||
				value <= n.DemandS/n.DemandDollar {
				t.Errorf("%s: value %.2f in hour %d, at %g s", n.Name, value, k, b.Seconds)
			}
		}
	}
}
