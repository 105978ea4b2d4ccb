package dorylus

import (
	"math"
	"testing"
)

// near reports whether two numbers agree within the digits that the paper prints.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tolerance) {
		t.Errorf("%s: %g, not %g", what, got, want)
	}
}

// "To train Amazon with the same target accuracy …: 17.7× the value of DGL (sampling) and
// 8.6× the value of AliGraph." (§7.5)
func TestValuesOfTable5(t *testing.T) {
	dorylus := printed5("amazon", "Dorylus").value()
	for system, worth := range worth5["amazon"] {
		near(t, system, dorylus/printed5("amazon", system).value(), worth, 0.01)
	}
}

// "Overall, async (s=0) is 1.234× faster than pipe and 1.233× than async (s=1). It also provides
// 1.288× and 1.494× higher value than pipe and async (s=1) respectively." (§7.3) s=1 needs 1.41
// epochs for 1.08 of s=0, and its epochs take about as long: 1.31 times the time.
func TestRatiosOfAsynchrony(t *testing.T) {
	near(t, "s=1 to s=0", printed3[1], 1.41/1.08, 0.06)
}

// "… the training time of Dorylus under 4 servers is only 1.1× longer than that of the CPU only
// variant with 8 servers. Similarly, Dorylus under 8 servers is only 1.05× slower than the CPU
// only variant with 16 servers." (§7.4) The performance of CPUs in figure 8 is the same number.
func TestHalfTheServers(t *testing.T) {
	near(t, "8 servers", printed8["8 CPU only"].performance/printed8["4 Dorylus"].performance, twice8[4], 1e-9)
}

// "… training on Amazon with 8 K80s took 1578 seconds and had a total cost of $3.16. Using 8 V100s
// took 385 seconds and cost $2.62 … a value increase of 4.93×" (§7.2)
func TestValueOfV100(t *testing.T) {
	near(t, "cost of p2", cluster{"p2.xlarge", 8}.dollars(1578), 3.16, 0.005)
	near(t, "cost of p3", cluster{"p3.2xlarge", 8}.dollars(385), 2.62, 0.005)
	near(t, "value", 1578*3.16/(385*2.62), table2[5].value, 0.005)
}

// "Dorylus gains a 2.82× speedup with only 5% more cost when the number of servers increases from 4
// to 16, leading to a 2.68× gain in its value." (§7.4)
func TestValueOfScaling(t *testing.T) {
	p := printed8["16 Dorylus"]
	near(t, "value", p.performance/1.05, p.value, 0.005)
}

// "… training the GAT … 2.75× higher value than CPU-only … " and, in the abstract, "1.22× faster
// and 4.83× cheaper than GPU servers" (§7.4)
func TestValuesOfTable4(t *testing.T) {
	p := table4[5].printed
	near(t, "CPU only", p[0].value()/p[1].value(), 2.75, 0.01)
	near(t, "faster than GPUs", p[2].seconds/p[0].seconds, 1.22, 0.01)
	near(t, "value to GPUs", p[0].value()/p[2].value(), 4.83, 0.01)
}

// "… training on the r5 instances typically took nearly 3× as long as computation on c5."
// (§7.2) The model's 32 processors of r5.2xlarge (4) are a third of those of c5n.2xlarge (12).
func TestModelOfTable2(t *testing.T) {
	m := Model{Graph: 96, Ranks: 2, GhostPower: 0.5}
	near(t, "r5 to c5n", m.Seconds(table2[0].cluster, cpuOnly, true)/m.Seconds(table2[1].cluster, cpuOnly, true), 3, 1e-9)
}

// On two servers of 8 processors and 25 Gbit/s: 32 s of graph work take 2 s, 16 s of tensor
// work 1 s more. With functions it is 8 s / 0.1085 of a processor and 1 GB at 25 MB/s
// a server, 113.7 s, by a hundred of them.
func TestModel(t *testing.T) {
	c := cluster{"c5n.2xlarge", 2}
	m := Model{Graph: 32, Tensor: 16, Rows: 2e9, Ranks: 8, GhostPower: 0.5, Values: 2e9, Invocations: 2000}
	rows := 2e9 * 2 / (25e9 / 8 * 1448 / 1538)
	near(t, "CPU only", m.Seconds(c, cpuOnly, true), 3, 1e-9)
	near(t, "CPU only, no overlap", m.Seconds(c, cpuOnly, false), 3+rows, 1e-9)
	near(t, "functions", m.Seconds(c, functions, true), 2, 1e-9)
	near(t, "functions, no overlap", m.Seconds(c, functions, false), 2+rows+1.13708333, 1e-6)
	m.Rows *= 2
	near(t, "a slow link", m.Seconds(c, functions, true), 2*rows, 1e-9)
	servers, calls := m.Cost(c, 3600, 10, functions)
	near(t, "servers", servers, 0.864, 1e-9)
	// 113.7 ms of an invocation are charged as 200 ms of 192 MB, and as a request.
	near(t, "functions", calls, 10*2000*(0.2*0.1875*0.0000166667+0.0000002), 1e-6)
	if _, cards, _ := m.Epoch(cluster{"c5n.2xlarge", 1}, cpuOnly); cards != 0 {
		t.Errorf("one server exchanges rows for %g s", cards)
	}
	if _, calls := m.Cost(c, 3600, 10, cpuOnly); calls != 0 {
		t.Errorf("functions of CPUs cost $%g", calls)
	}
}
