package bill

import (
	"math"
	"math/big"
	"testing"
	"time"
)

// cluster returns the cost of n machines for a time.
func cluster(t *testing.T, name string, n int, seconds float64) float64 {
	t.Helper()
	i, err := ParseInstance(name)
	if err != nil {
		t.Fatal(err)
	}
	return i.USD(n, seconds)
}

func float(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// "The base c5 instance has 2 vCPU, 4 GB RAM, and 10 Gbps per-instance network
// bandwidth costing $0.085/h. … The base c5n instance … costing $0.108/h. … Each p3
// base instance has 1 GPU …, costing $3.06/h." (§7.2)
func TestPricesOfThePaper(t *testing.T) {
	for name, want := range map[string]string{"c5.large": "0.085", "c5n.large": "0.108", "p3.2xlarge": "3.06"} {
		i, err := ParseInstance(name)
		if err != nil || i.Hour.USD.Cmp(rat(want)) != 0 {
			t.Errorf("%s: %v %v, want %s", name, i.Hour.USD, err, want)
		}
	}
}

// Table 4 without Lambdas, on the clusters of table 3: the hourly cost of the machines equals
// the paper's, within its last digit.
func TestCostsOfTable4(t *testing.T) {
	for _, c := range []struct {
		instance      string
		n             int
		seconds, cost float64
		digit         float64 // the last one printed
	}{
		{"c5.2xlarge", 2, 1005.4, 0.19, 0.01},
		{"c5n.2xlarge", 12, 1290.5, 1.85, 0.01},
		{"c5n.2xlarge", 8, 710.2, 0.68, 0.01},
		{"c5n.4xlarge", 32, 1990.8, 15.3, 0.1},
		{"c5.2xlarge", 10, 1270.4, 1.20, 0.01},
		{"c5n.2xlarge", 12, 2092.7, 3.01, 0.01},
		{"p3.2xlarge", 2, 162.9, 0.28, 0.01},
		{"p3.2xlarge", 12, 324.9, 3.31, 0.01},
		{"p3.2xlarge", 8, 385.3, 2.62, 0.01},
		{"p3.2xlarge", 32, 1490.4, 40.5, 0.1},
		{"p3.2xlarge", 10, 130.9, 1.11, 0.01},
		{"p3.2xlarge", 12, 1039.2, 10.60, 0.01},
	} {
		if got := cluster(t, c.instance, c.n, c.seconds); math.Abs(got-c.cost) >= c.digit {
			t.Errorf("%d of %s for %g s: $%.4f, the paper has %g", c.n, c.instance, c.seconds, got, c.cost)
		}
	}
}

// "Training on Amazon with 8 K80s took 1578 seconds and had a total cost of $3.16.
// Using 8 V100s took 385 seconds and cost $2.62 — … resulting in a value increase of
// 4.93×." (§7.2)
func TestValueOfGPUs(t *testing.T) {
	k80, v100 := cluster(t, "p2.xlarge", 8, 1578), cluster(t, "p3.2xlarge", 8, 385)
	if math.Abs(k80-3.16) > 0.005 || math.Abs(v100-2.62) > 0.005 {
		t.Errorf("$%.4f and $%.4f", k80, v100)
	}
	more := Value(385, v100) / Value(1578, k80)
	if math.Abs(more-4.93) > 0.02 {
		t.Errorf("a value %.3f times as high", more)
	}
}

// "Dorylus with Lambdas provides a 2.75× higher value than CPU-only (i.e., 1/(853.4 ×
// 2.67) compared to 1/(2092.7 × 3.01))." (§7.4)
func TestValueOfLambdas(t *testing.T) {
	with, without := Value(853.4, 2.67), Value(2092.7, 3.01)
	if want := 1 / (853.4 * 2.67); math.Abs(with/want-1) > 1e-12 {
		t.Errorf("%g, want %g", with, want)
	}
	if math.Abs(with/without-2.75) > 0.02 {
		t.Errorf("%.3f times as high", with/without)
	}
}

// "If system A trains a network twice as fast as system B, and yet costs the same to
// train, we say A has twice the value of B." (§7.1)
func TestTwiceTheValue(t *testing.T) {
	if a, b := Value(60, 7), Value(120, 7); a != 2*b {
		t.Errorf("%g and %g", a, b)
	}
}

// "Each Lambda is a container with 0.11 vCPUs and 192 MB memory. Lambdas have a
// static cost of $0.20 per 1 M requests, and a compute cost of $0.01125/h (billed per
// 100 ms)." (§7.2)
func TestLambdasOfThePaper(t *testing.T) {
	tariff, err := Architecture("x86_64-100ms")
	if err != nil {
		t.Fatal(err)
	}
	hour := Functions{Tariff: tariff, Memory: 192}
	hour.Add(FirstUsed, 0, time.Hour)
	compute := new(big.Rat).Sub(hour.cost(FirstUsed), tariff.Request.USD)
	if math.Abs(float(compute)-0.01125) > 1e-6 {
		t.Errorf("an hour is $%s", compute.FloatString(8))
	}
	million := Functions{Tariff: tariff, Memory: 192}
	for range 1000000 {
		million.Add(FirstUsed, 0, 0)
	}
	if million.cost(FirstUsed).Cmp(rat("0.2")) != 0 {
		t.Errorf("a million requests are $%s", million.cost(FirstUsed).FloatString(8))
	}
	if got := tariff.Billed(0, 101*time.Millisecond); got != 200*time.Millisecond {
		t.Errorf("101 ms are billed as %v", got)
	}
}
