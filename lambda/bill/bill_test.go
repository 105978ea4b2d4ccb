package bill

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
)

func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

// Each price has a date and a source that the head of the file explains.
func TestPricesAreDated(t *testing.T) {
	table, err := read(prices)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]Price{}
	for name, i := range table.instances {
		list[name] = i.Hour
	}
	for name, i := range table.spots {
		list[name+" spot"] = i.Hour
	}
	for name, f := range table.tariffs {
		list[name], list[name+" request"] = f.GBSecond, f.Request
	}
	if len(table.instances) < 80 || len(table.spots) != 6 || len(table.tariffs) != 3 {
		t.Errorf("%d instances, %d spot prices, %d tariffs", len(table.instances), len(table.spots), len(table.tariffs))
	}
	date := regexp.MustCompile(`^20\d\d(-\d\d){0,2}$`)
	for name, p := range list {
		if !date.MatchString(p.Date) || !strings.Contains(prices, "\n#   "+p.Source+" ") {
			t.Errorf("%s is of %q, from %q", name, p.Date, p.Source)
		}
	}
}

// Malformed files are rejected, with the line.
func TestBadPrices(t *testing.T) {
	const good = "ec2\ta\t1\thour\t2025\tlist\n"
	for _, text := range []string{
		"ec2\ta\t1\thour\t2025\n", "ec2\ta\tx\thour\t2025\tlist\n", "ec2\ta\t0\thour\t2025\tlist\n", "ec2\ta\t1\tday\t2025\tlist\n",
		"\n", good + good, "ec2-spot\ta\t1\thour\t2025\tlist\n", good + "ec2-spot\ta\t1\tday\t2025\tlist\n",
		good + "ec2-spot\ta\t1\thour\t2025\tlist\nec2-spot\ta\t1\thour\t2025\tlist\n", "lambda\ta\t1\trequest\t2025\taws\n",
		"lambda\ta\t1\tGB-second/0ms\t2025\taws\n", "lambda\ta\t1\tGB-second\t2025\taws\n",
	} {
		if _, err := read(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if _, err := read("# nothing\n" + good); err != nil {
		t.Error(err)
	}
}

// An instance is one of the table, or a price in dollars per hour.
func TestParseInstance(t *testing.T) {
	for text, want := range map[string]string{"c5n.2xlarge": "0.432", "0.35": "0.35", "12": "12", ".5": "0.5"} {
		if i, err := ParseInstance(text); err != nil || i.Hour.USD.Cmp(rat(want)) != 0 {
			t.Errorf("%s: %v %v", text, i.Hour.USD, err)
		}
	}
	for _, text := range []string{"", "c5n.3xlarge", "0", "0.0", "-1", "1e9", "1/3", "NaN", ".", "1.2.3", strings.Repeat("9", 31)} {
		if i, err := ParseInstance(text); fault.KindOf(err) != fault.Usage || err == nil || !strings.Contains(err.Error(), "c5n.2xlarge") {
			t.Errorf("%q: %v %v", text, i, err)
		}
	}
	if _, err := Architecture("mips"); err == nil || !strings.Contains(err.Error(), "arm64") {
		t.Error(err)
	}
}

// A spot price is below the one on demand, and types without one are refused.
func TestSpot(t *testing.T) {
	if spot, demand, err := Spot("p3.2xlarge"); err != nil || spot != 0.918 || demand != 3.06 {
		t.Error(spot, demand, err)
	}
	table, err := read(prices)
	if err != nil {
		t.Fatal(err)
	}
	for name := range table.spots {
		if spot, demand, err := Spot(name); err != nil || spot >= demand {
			t.Error(name, spot, demand, err)
		}
	}
	for _, text := range []string{"", "c5n.large", "0.35"} {
		if _, _, err := Spot(text); fault.KindOf(err) != fault.Usage || err == nil || !strings.Contains(err.Error(), "p3.2xlarge") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// By hand: 1769 MB are 1769/1024 GB. 250.0001 ms with an initialisation of 80 ms are
// 331 ms: 0.331 × 1769/1024 GB-seconds, at $0.0000166667 and $0.0000133334 each.
// Exactly, 0.331 × 1769 = 585.539.
func TestCostByHand(t *testing.T) {
	for arch, perGBSecond := range map[string]string{"x86_64": "0.0000166667", "arm64": "0.0000133334"} {
		tariff, err := Architecture(arch)
		if err != nil {
			t.Fatal(err)
		}
		f := Functions{Tariff: tariff, Memory: 1769}
		f.Add(FirstUsed, 80*time.Millisecond, 250*time.Millisecond+100*time.Nanosecond)
		gbs := new(big.Rat).Quo(rat("585.539"), rat("1024"))
		if f.gbSeconds(FirstUsed).Cmp(gbs) != 0 {
			t.Errorf("%s: %s GB-seconds", arch, f.gbSeconds(FirstUsed).FloatString(12))
		}
		want := new(big.Rat).Mul(gbs, rat(perGBSecond))
		if want.Add(want, rat("0.0000002")); f.cost(FirstUsed).Cmp(want) != 0 {
			t.Errorf("%s: $%s, want %s", arch, f.cost(FirstUsed).FloatString(15), want.FloatString(15))
		}
	}
}

// Classes are summed separately. Their sum is the bill.
func TestClasses(t *testing.T) {
	tariff, _ := Architecture("arm64")
	f := Functions{Tariff: tariff, Memory: 1024}
	for range 3 {
		f.Add(FirstUsed, 0, time.Second)
	}
	f.Add(Retried, 0, 2*time.Second)
	f.Add(Wasted, 0, 1500*time.Microsecond)
	for c, want := range map[Class]string{FirstUsed: "3", Retried: "2", Wasted: "0.002"} {
		if f.gbSeconds(c).Cmp(rat(want)) != 0 {
			t.Errorf("class %d: %s GB-seconds", c, f.gbSeconds(c).FloatString(6))
		}
	}
	if f.Usage[FirstUsed].Invocations != 3 || f.Usage[Retried].Invocations != 1 || f.Usage[Wasted].Invocations != 1 {
		t.Error("an invocation is in another class")
	}
	// 5.002 × 0.0000133334 + 5 × 0.0000002
	if math.Abs(f.USD()-0.0000676936668) > 1e-18 || math.Abs(f.GBSeconds()-5.002) > 1e-15 || f.WastedGBSeconds() != 0.002 {
		t.Errorf("$%g, %g GB-seconds", f.USD(), f.GBSeconds())
	}
	if Value(0, 1) != 0 || Value(3600, 0) != 0 {
		t.Error("a value of what cost nothing")
	}
}

// Machines are charged for fractions of hours.
func TestMachines(t *testing.T) {
	i, _ := ParseInstance("3.6")
	if usd := i.USD(2, 10); math.Abs(usd-0.02) > 1e-15 {
		t.Errorf("$%g", usd)
	}
}

// Usage can be sent as numbers. The numbers of two ranks can be added.
func TestUsageAsNumbers(t *testing.T) {
	tariff, _ := Architecture("arm64")
	var a, b Usage
	a.Take(tariff, FirstUsed, 3*time.Millisecond, 4*time.Millisecond)
	a.Take(tariff, Wasted, 0, time.Hour)
	b.Take(tariff, Retried, 0, 2*time.Millisecond)
	sum, other := a.Numbers(), b.Numbers()
	for i, x := range other {
		sum[i] += x
	}
	if a.Add(b); len(sum) != NumUsage || UsageOf(sum) != a || a[Wasted].Billed != time.Hour || a[Retried].Invocations != 1 {
		t.Errorf("%v are not %+v", sum, a)
	}
}
