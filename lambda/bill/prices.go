package bill

import (
	_ "embed" // the prices
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"siafu/internal/fault"
)

//go:embed prices.tsv
var prices string

// Price is an amount of dollars, with the date and the source of its publication.
type Price struct {
	USD          *big.Rat
	Date, Source string
}

// Instance is a type of machine, charged by the hour.
type Instance struct {
	Name string
	Hour Price
}

// Tariff is the price list of Lambda for an architecture.
type Tariff struct {
	Name     string
	GBSecond Price         // of reserved memory
	Request  Price         // of an invocation
	Step     time.Duration // durations are rounded up to a multiple of it
}

// table contains the prices of a file.
type table struct {
	instances map[string]Instance
	spots     map[string]Instance // prices of spot machines
	tariffs   map[string]Tariff
}

// read reads a file of prices.
func read(text string) (table, error) {
	t := table{instances: map[string]Instance{}, spots: map[string]Instance{}, tariffs: map[string]Tariff{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := t.row(strings.Split(line, "\t")); err != nil {
			return t, fmt.Errorf("bill: %q: %w", line, err)
		}
	}
	for name, f := range t.tariffs {
		if f.GBSecond.USD == nil || f.Request.USD == nil {
			return t, fmt.Errorf("bill: %s lacks one of its two prices", name)
		}
	}
	for name := range t.spots {
		if t.instances[name].Name == "" {
			return t, fmt.Errorf("bill: %s has a spot price and none on demand", name)
		}
	}
	return t, nil
}

// row parses a line of the file: service, name, dollars, unit, date and source.
func (t *table) row(cells []string) error {
	if len(cells) != 6 {
		return fmt.Errorf("%d columns where 6 are needed", len(cells))
	}
	service, name, unit := cells[0], cells[1], cells[3]
	usd, ok := new(big.Rat).SetString(cells[2])
	if !ok || usd.Sign() <= 0 {
		return fmt.Errorf("%q is not an amount in dollars", cells[2])
	}
	p, f := Price{usd, cells[4], cells[5]}, t.tariffs[name]
	var err error
	switch per, step, _ := strings.Cut(unit, "/"); {
	case service == "ec2" && unit == "hour" && t.instances[name].Name == "":
		t.instances[name] = Instance{name, p}
		return nil
	case service == "ec2-spot" && unit == "hour" && t.spots[name].Name == "":
		t.spots[name] = Instance{name, p}
		return nil
	case service == "lambda" && unit == "request" && f.Request.USD == nil:
		f.Request = p
	case service == "lambda" && per == "GB-second" && f.GBSecond.USD == nil:
		f.GBSecond = p
		if f.Step, err = time.ParseDuration(step); err == nil && f.Step <= 0 {
			err = fmt.Errorf("a step of %v", f.Step)
		}
	default:
		return fmt.Errorf("no such service and unit, or a second price")
	}
	f.Name = name
	t.tariffs[name] = f
	return err
}

// published returns the prices in the program.
func published() table {
	t, err := read(prices)
	if err != nil {
		panic(err.Error()) // a programmer's error
	}
	return t
}

// ParseInstance returns the instance type of a name, or a machine of N dollars an hour. Other text
// is a fault of kind Usage.
func ParseInstance(text string) (Instance, error) {
	t := published()
	if i, ok := t.instances[text]; ok {
		return i, nil
	}
	if usd, ok := Dollars(text); ok {
		return Instance{text, Price{USD: usd, Source: "given"}}, nil
	}
	return Instance{}, fault.New(fault.Usage, "train", "", "--instance=%q", text).
		Then("give dollars per hour, such as 0.35, or an instance type with a known price: %s", strings.Join(names(t.instances), ", "))
}

// Spot returns the dollars per hour of an instance type as a spot machine and on demand. A type
// without a known spot price is a fault of kind Usage.
func Spot(name string) (spot, demand float64, err error) {
	t := published()
	s, known := t.spots[name]
	if !known {
		return 0, 0, fault.New(fault.Usage, "spot", "", "--instance=%q", name).
			Then("set --price and --price-demand, or an instance type with a known spot price: %s", strings.Join(names(t.spots), ", "))
	}
	spot, _ = s.Hour.USD.Float64()
	demand, _ = t.instances[name].Hour.USD.Float64()
	return spot, demand, nil
}

// Dollars parses a positive number of dollars: digits with at most one point.
func Dollars(text string) (*big.Rat, bool) {
	if len(text) > 30 || strings.Trim(text, "0123456789.") != "" {
		return nil, false
	}
	usd, ok := new(big.Rat).SetString(text)
	return usd, ok && usd.Sign() > 0
}

// Architecture returns the tariff of a name: x86_64, arm64, or x86_64-100ms, which is the tariff at
// the time of Dorylus. Another name is a fault of kind Usage.
func Architecture(name string) (Tariff, error) {
	t := published()
	if f, ok := t.tariffs[name]; ok {
		return f, nil
	}
	return Tariff{}, fault.New(fault.Usage, "lambda", "", "architecture %q", name).
		Then("use one of %s", strings.Join(names(t.tariffs), ", "))
}

func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
