package partition

import (
	"cmp"
	"strings"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/internal/catalog"
	"siafu/internal/fault"
)

const op = "partition"

// filePrefix is the prefix of the method that reads a file.
const filePrefix = "file:"

// Default is the default method.
const Default = "fennel"

// entry is the name and the description of a partitioner.
type entry = catalog.Entry

// method describes a partitioner that needs no input except the dataset. To add a partitioner,
// define a method in the file of its algorithm and add it to methods.
type method struct {
	entry
	// assign returns the owner of each vertex. The caller has set all options.
	assign func(*graph.Dataset, Options) []uint32
	// These fields report whether the partitioner uses Options.Seed, Passes and Slack.
	seed, passes, slack bool
}

// methods lists the partitioners.
var methods = []*method{
	&contiguousMethod,
	&hashMethod,
	&ldgMethod,
	&fennelMethod,
	&multilevelMethod,
}

// Choices describes the names that Options.Method accepts.
func Choices() []catalog.Entry {
	return append(catalog.Entries(methods, nil), entry{Name: "file", Form: filePrefix + "PATH",
		Help: "the rank of vertex v in line v, or an `.npy` of integers; ranks may be empty. For METIS, KaHIP, " +
			"Dorylus's `.parts` or your own"})
}

// Usage lists the names that Options.Method accepts.
func Usage() string { return catalog.List(catalog.Forms(Choices()), "or") }

// Methods returns the names that Options.Method accepts, without file:PATH.
func Methods() []string { return catalog.Names(catalog.Entries(methods, nil)) }

// HelpLists returns the texts that replace ${NAME=} in the help of Options, by name.
func HelpLists() map[string]string {
	using := func(uses func(*method) bool) string {
		return catalog.List(catalog.Names(catalog.Entries(methods, uses)), "and")
	}
	return map[string]string{
		"partitioners": Usage(),
		"partitioner":  Default,
		"seeded":       using(func(m *method) bool { return m.seed }),
		"passing":      using(func(m *method) bool { return m.passes }),
		"balancing":    using(func(m *method) bool { return m.slack }),
	}
}

// Options are the options of a partitioning: the flags of "siafu partition". The zero value of
// Method, Order, Passes and Slack means their default.
//
// Slack limits the number of vertices and the number of edges of a part. A vertex is never divided,
// so the edges of a part may exceed the limit by the degree of one vertex. Multilevel also balances
// training vertices, with twice the slack: 1.10 if Slack is 1.05.
type Options struct {
	Parts  int     `required:"" help:"Number of parts: the number of graph ranks."`
	Method string  `default:"fennel" values:"partitioners" help:"Partitioner: ${partitioners=}. PATH has one partition number a line."`
	Order  string  `name:"vertex-order" default:"auto" help:"Vertex order within a rank: auto, natural, lp or rabbit."`
	Seed   uint64  `default:"1" help:"Seed of ${seeded=}."`
	Passes int     `default:"3" help:"Number of passes over the vertices of ${passing=}."`
	Slack  float64 `default:"1.05" help:"Maximum size of a partition, relative to the mean. Applies to ${balancing=}."`
	Root   string  `name:"parts-dir" placeholder:"DIR" help:"Folder of the shards, in a subfolder named after their number. Empty: parts in the dataset folder."`
}

func (o Options) withDefaults() Options {
	o.Method, o.Order = cmp.Or(o.Method, Default), cmp.Or(o.Order, "auto")
	o.Passes, o.Slack = cmp.Or(o.Passes, 3), cmp.Or(o.Slack, 1.05)
	return o
}

// validate returns a fault if a graph of n vertices cannot be partitioned with o. All options of o
// must be set.
func (o Options) validate(n int64) error {
	usage := func(format string, args ...any) *fault.Error { return fault.New(fault.Usage, op, "", format, args...) }
	switch {
	case o.Parts < 1:
		return usage("%d parts", o.Parts).Then("set 1 or more")
	case o.Passes < 0:
		return usage("%d passes", o.Passes).Then("set 1 or more")
	case !(o.Slack >= 1 && o.Slack <= 1e6):
		return usage("slack %v", o.Slack).Then("set at least 1, such as 1.05")
	case int64(o.Parts) > n:
		return fault.New(fault.Config, op, "", "%d parts of a graph of %d vertices", o.Parts, n).
			Then("use at most one graph rank per vertex")
	}
	return order.Check(o.Order)
}

// Assign returns the owner of each vertex of ds, a rank in 0..Parts-1. Faults have kind Usage
// for invalid options, Config for more parts than vertices, and Missing, IO or Data for the
// file of file:PATH.
func Assign(ds *graph.Dataset, o Options) ([]uint32, error) {
	o = o.withDefaults()
	n := ds.In.Rows()
	if err := o.validate(int64(n)); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(o.Method, filePrefix); ok {
		return fromFile(path, n, o.Parts)
	}
	m, ok := catalog.Find(methods, o.Method)
	if !ok {
		return nil, fault.New(fault.Usage, op, "", "unknown method %q", o.Method).Then("use %s", Usage())
	}
	if o.Parts == 1 {
		return make([]uint32, n), nil
	}
	return m.assign(ds, o), nil
}
