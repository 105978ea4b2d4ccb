package partition

import (
	"slices"
	"strings"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/order"
	"siafu/graph/partition/multilevel"
)

const op = "partition"

// filePrefix begins the method that reads a file.
const filePrefix = "file:"

// methods are those that need nothing but a dataset.
var methods = []string{"contiguous", "hash", "ldg", "fennel", "multilevel"}

// Methods are the names that Options.Method takes, without file:PATH.
func Methods() []string { return slices.Clone(methods) }

// Options says how to partition. The zero value of Method, Order, Passes and
// Slack stands for their default.
type Options struct {
	// Method is contiguous, hash, ldg, fennel (the default), multilevel or
	// file:PATH.
	Method string
	Parts  int
	// Order names the order in which a rank numbers its vertices, one of
	// package order's; auto.
	Order string
	Seed  uint64 // of hash and multilevel; the others draw nothing
	// Passes over the vertices of ldg and fennel; 3.
	Passes int
	// Slack is how many times its fair share of vertices and of edges a rank
	// may get from ldg, fennel and multilevel; 1.05. One vertex is never
	// divided: a share of edges may be exceeded by its degree. Multilevel also
	// balances training vertices, with twice the slack: 1.10.
	Slack float64
}

func (o Options) withDefaults() Options {
	if o.Method == "" {
		o.Method = "fennel"
	}
	if o.Order == "" {
		o.Order = "auto"
	}
	if o.Passes == 0 {
		o.Passes = 3
	}
	if o.Slack == 0 {
		o.Slack = 1.05
	}
	return o
}

// validate checks o, which has its defaults, against a graph of n vertices.
func (o Options) validate(n int64) error {
	usage := func(format string, args ...any) *fault.Error { return fault.New(fault.Usage, op, "", format, args...) }
	switch {
	case o.Parts < 1:
		return usage("%d parts", o.Parts).Then("ask for 1 or more")
	case o.Passes < 0:
		return usage("%d passes", o.Passes).Then("ask for 1 or more")
	case !(o.Slack >= 1 && o.Slack <= 1e6):
		return usage("slack %v", o.Slack).Then("it must be at least 1, such as 1.05")
	case int64(o.Parts) > n:
		return fault.New(fault.Config, op, "", "%d parts of a graph of %d vertices", o.Parts, n).
			Then("use at most as many graph ranks as there are vertices")
	}
	return order.Check(o.Order)
}

// Assign returns the owner of each vertex of ds, a rank in 0..Parts-1. Faults
// have kind Usage for options that can't be, Config for more parts than
// vertices, and Missing, IO or Data for the file of file:PATH.
func Assign(ds *graph.Dataset, o Options) ([]uint32, error) {
	o = o.withDefaults()
	n := ds.In.Rows()
	if err := o.validate(int64(n)); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(o.Method, filePrefix); ok {
		return fromFile(path, n, o.Parts)
	}
	switch o.Method {
	case "contiguous":
		return contiguous(ds.In.Offsets, o.Parts), nil
	case "hash":
		return hashed(n, o.Parts, o.Seed), nil
	case "ldg", "fennel":
		return newStream(ds, o).run(), nil
	case "multilevel":
		return multilevel.Partition(ds, multilevel.Options{
			Parts: o.Parts, Seed: o.Seed,
			Slack: multilevel.Slack{Vertices: o.Slack, Edges: o.Slack, Train: 2*o.Slack - 1},
		}), nil
	}
	return nil, fault.New(fault.Usage, op, "", "unknown method %q", o.Method).
		Then("use %s or file:PATH", strings.Join(methods, ", "))
}
