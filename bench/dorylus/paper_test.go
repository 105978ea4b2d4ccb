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
	near(t, "DGL", dorylus/printed5("amazon", "DGL (sampling)").value(), 17.7, 0.01)
	near(t, "AliGraph", dorylus/printed5("amazon", "AliGraph").value(), 8.6, 0.01)
}

// "… training on the r5 instances typically took nearly 3× as long as computation on c5."
// (§7.2) The model's 32 processors of r5.2xlarge (4) are a third of those of c5n.2xlarge (12).
func TestModelOfTable2(t *testing.T) {
	m := Model{Graph: 96, Ranks: 2, GhostPower: 0.5}
	near(t, "r5 to c5n", m.Seconds(table2[0].cluster, false, true)/m.Seconds(table2[1].cluster, false, true), 3, 1e-9)
}

// On one server of 8 processors and 25 Gbit/s: 16 s of graph work take 2 s, 8 s of tensor
// work 1 s more. With functions it is 8 s / 0.1085 of a processor and 1 GB at 25 MB/s,
// 113.7 s, by a hundred of them.
func TestModel(t *testing.T) {
	c := cluster{"c5n.2xlarge", 1}
	m := Model{Graph: 16, Tensor: 8, Rows: 2e9, Ranks: 4, GhostPower: 0.5, Values: 1e9, Invocations: 1000}
	rows := 2e9 * 2 / (25e9 / 8 * 1448 / 1538)
	near(t, "CPU only", m.Seconds(c, false, true), 3, 1e-9)
	near(t, "CPU only, no overlap", m.Seconds(c, false, false), 3+rows, 1e-9)
	near(t, "functions", m.Seconds(c, true, true), 2, 1e-9)
	near(t, "functions, no overlap", m.Seconds(c, true, false), 2+rows+1.13708333, 1e-6)
	m.Rows *= 2
	near(t, "a slow link", m.Seconds(cluster{"c5n.2xlarge", 1}, true, true), 2*rows, 1e-9)
	servers, calls := m.Cost(c, 3600, 10, true)
	near(t, "servers", servers, 0.432, 1e-9)
	// 113.7 ms of an invocation are charged as 200 ms of 192 MB, and as a request.
	near(t, "functions", calls, 10*1000*(0.2*0.1875*0.0000166667+0.0000002), 1e-6)
	if _, calls := m.Cost(c, 3600, 10, false); calls != 0 {
		t.Errorf("functions of CPUs cost $%g", calls)
	}
}
