package order

import (
	"runtime/debug"
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
)

// Names are the orders that New supports.
const Names = "auto, natural, rcm, lp, rabbit"

// Choice is an order of vertices and its estimated benefit.
type Choice struct {
	Name string `json:"name"` // the chosen order, never auto
	// NaturalMisses and Misses estimate the fraction of edges whose source row is not in a
	// core's cache: for the natural order and for this order. See Misses.
	NaturalMisses float64 `json:"natural_misses"`
	Misses        float64 `json:"misses"`
	// Vertices contains all vertices in order; nil if the order is natural.
	Vertices []uint32 `json:"-"`
	// Seconds is the time to choose and compute the order. It is not stored, so that equal
	// partitionings produce equal files.
	Seconds float64 `json:"-"`
}

// Check returns a Usage fault if New does not support the name.
func Check(name string) error {
	for known := range strings.SplitSeq(Names, ", ") {
		if name == known {
			return nil
		}
	}
	return fault.New(fault.Usage, "order vertices", "", "unknown vertex order %q", name).Then("use one of %s", Names)
}

// New orders the vertices of g:
//
//	natural  ascending ids
//	rcm      reverse Cuthill-McKee
//	lp       nested communities found by label propagation
//	rabbit   hierarchical communities of rising modularity
//	auto     the one of natural, rabbit and lp with the fewest estimated misses;
//	         natural, without trying the others, if Promising returns false
//
// Check must accept the name.
func New(name string, g graph.CSR) Choice {
	begin := time.Now()
	c := Choice{Name: "natural", NaturalMisses: Misses(g, nil)}
	c.Misses = c.NaturalMisses
	if name == "auto" {
		c.auto(g)
	} else if name != "natural" {
		c.take(name, g, 2) // misses are below 2 in any case
	}
	c.Seconds = time.Since(begin).Seconds()
	return c
}

const (
	// worth is the fraction of the natural order's misses that another order must not exceed to
	// be preferred. Gather time follows the estimate only loosely, and the natural order costs
	// nothing.
	worth = 0.9
	// enough is the fraction of misses below which another order gains nothing: nearly all rows
	// are then in the cache.
	enough = 0.1
)

func (c *Choice) auto(g graph.CSR) {
	if c.NaturalMisses < enough || !Promising(g) {
		return
	}
	c.take("rabbit", g, worth*c.NaturalMisses)
	c.take("lp", g, min(c.Misses, worth*c.NaturalMisses))
	debug.FreeOSMemory() // frees the memory of the orders before shards are allocated
}

// take computes the order called name and keeps it if its misses are below the given value.
func (c *Choice) take(name string, g graph.CSR, below float64) {
	vertices := create(name, g)
	if m := Misses(g, vertices); m < below {
		c.Name, c.Vertices, c.Misses = name, vertices, m
	}
}

func create(name string, g graph.CSR) []uint32 {
	switch name {
	case "rcm":
		return reverseCuthillMcKee(g)
	case "lp":
		return byLabels(g)
	case "rabbit":
		return byModularity(g)
	}
	panic("order: unknown order")
}

// identity returns 0..n-1.
func identity(n int) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(i)
	}
	return p
}
