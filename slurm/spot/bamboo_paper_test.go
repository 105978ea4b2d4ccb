package spot

import (
	"testing"
)

// "Once consecutive instances are preempted, RC can no longer provide resilience" (§3.1): the
// neighbours n1 and n2, or n1 and n4 at the ends of a pipeline, are fatal if lost at once. Those of
// different pipelines, and n1 with n3, are not.
func TestTwoNeighbours(t *testing.T) {
	in := small()
	for lost, fatal := range map[[2]string]float64{
		{"n1@0", "n2@1"}: 1, {"n1@0", "n4@1"}: 1, {"n2@1", "n3@0"}: 1, {"n1@0", "n3@0"}: 0, {"n1@0", "n6@1"}: 0, {"n2@1", "n8@1"}: 0,
	} {
		r := run(t, in, "bamboo", begin()+"3600000,remove,"+lost[0]+"\n3600000,remove,"+lost[1]+"\n"+end)
		if r.Fatal != fatal || r.Restarts != fatal || (r.Fractions["wasted"] > 0) != (fatal > 0) {
			t.Errorf("%v: %+v", lost, r)
		}
	}
}

// "continuing training with RC after many preemptions is a 'spare-tire' approach, which is
// vulnerable to future preemptions" (§3.7): n1 runs its stage and that of n2. Until the pipelines are
// rebalanced, n1 must not be lost, nor n3, whose state n2 held.
func TestSpareTire(t *testing.T) {
	in := small()
	for second, fatal := range map[string]float64{"n1@0": 1, "n3@0": 1, "n4@1": 0, "n5@0": 0} {
		in.Risk = 1 // no rebalancing
		text := begin() + "3600000,remove,n2@1\n3601000,remove," + second + "\n" + end
		if r := run(t, in, "bamboo", text); r.Fatal != fatal {
			t.Errorf("%s: %+v", second, r)
		}
	}
	// Rebalanced to one pipeline, the same loss is not fatal.
	in.Risk = 0.05
	if r := run(t, in, "bamboo", begin()+"3600000,remove,n2@1\n4000000,remove,n1@0\n"+end); r.Fatal != 0 || r.Reconfigurations < 1 {
		t.Errorf("%+v", r)
	}
}

// "Bamboo takes care to ensure that consecutive nodes in each pipeline come from different zones"
// (§3.1), so that the loss of all machines of a zone at once is recovered.
func TestZones(t *testing.T) {
	in := small()
	text := begin() + "3600000,remove,n2@1\n3600000,remove,n4@1\n3600000,remove,n6@1\n3600000,remove,n8@1\n" + end
	if r := run(t, in, "bamboo", text); r.Fatal != 0 || r.Reconfigurations != 1 {
		t.Errorf("%+v", r)
	}
	for _, zones := range []string{"000011112222", "0000011122", "00110", "012", "01222"} {
		var machines []*Machine
		for _, z := range zones {
			machines = append(machines, &Machine{Zone: int(z - '0')})
		}
		order := spread(machines)
		for k := range len(order) - 1 {
			if order[k].Zone == order[k+1].Zone {
				t.Errorf("%s: positions %d and %d are both in zone %d", zones, k, k+1, order[k].Zone)
			}
		}
	}
	if one := []*Machine{{}, {}, {}}; len(spread(one)) != 3 {
		t.Error("machines of one zone are not ordered")
	}
}

// "if the number of nodes joining is smaller than F [...] we move some nodes into the standby queue
// and decrease the total number of data-parallel pipelines"; "the number of nodes joining, together
// with those in the standby queue, can form a new pipeline, and in this case we add a new pipeline"
// (§3.7).
func TestReconfiguration(t *testing.T) {
	in := small()
	r := run(t, in, "bamboo", begin()+"1800000,remove,n2@1\n3600000,add,new@1\n"+end)
	rate := in.Rate(4, 1) / (1 + in.Redundancy)
	// Two pipelines, one, and two again. Pauses and the rest of two iterations take less than 100 s.
	if want := rate * (2*1800 + 1800 + 2*3600); r.Reconfigurations != 2 || r.Samples > want || r.Samples < want-rate*2*100 {
		t.Errorf("%.0f samples, expected about %.0f: %+v", r.Samples, want, r)
	}
	// "Bamboo would never try to scale the training beyond P × D" (§3.4).
	more := begin() + "0,add,x1@0\n0,add,x2@1\n0,add,x3@0\n0,add,x4@1\n" + end
	if a, b := run(t, in, "bamboo", begin()+end), run(t, in, "bamboo", more); a.Samples != b.Samples {
		t.Errorf("%g samples with more machines, %g without", b.Samples, a.Samples)
	}
}

// "suspending a pipeline upon losing an instance while letting other data-parallel pipelines
// continue to run" (§3.3): half of the samples are dropped until an allocation.
func TestSampleDropping(t *testing.T) {
	in := small()
	r := run(t, in, "dropping", begin()+"3600000,remove,n2@1\n"+end)
	full := in.Rate(4, 2)
	if want := full * 3600 * 1.5; r.Samples < want*0.999 || r.Samples > want*1.001 ||
		r.Dropped < full*1800*0.999 || r.Dropped > full*1800*1.001 {
		t.Errorf("%+v, expected %.0f samples", r, want)
	}
}

// "node preemptions and additions are frequent and bulky [...] This can make a checkpointing-based
// approach restart many times in a short window of time" (§3.3): a loss during a restart begins it
// again.
func TestRestartAgain(t *testing.T) {
	in := small()
	in.Restart = 100
	r := run(t, in, "checkpoint", begin()+"3600000,remove,n2@1\n3690000,remove,n3@0\n"+end)
	if got := r.Fractions["restarting"] * 7200; r.Restarts != 2 || got < 189.9 || got > 190.1 {
		t.Errorf("restarts for %.1f s: %+v", got, r)
	}
}
