package order

import (
	"runtime/debug"
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
)

// Names are the orders that New makes.
const Names = "auto, natural, rcm, lp, rabbit"

// Choice is an order of vertices and what is expected of it.
type Choice struct {
	Name string `json:"name"` // never auto: what was chosen
	// NaturalMisses and Misses estimate, for the graph's own order and for
	// this one, the fraction of edges whose source row a core has to fetch
	// from beyond its own cache; see Misses.
	NaturalMisses float64 `json:"natural_misses"`
	Misses        float64 `json:"misses"`
	// Vertices are all vertices in their order; nil where it is natural.
	Vertices []uint32 `json:"-"`
	// Seconds that it took to choose and to make it. They are not stored: equal
	// partitionings make equal files.
	Seconds float64 `json:"-"`
}

// Check reports whether New knows the name; if not it is a Usage fault.
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
//	natural  as they are
//	rcm      reverse Cuthill-McKee
//	lp       nested communities found by label propagation
//	rabbit   hierarchical communities of rising modularity
//	auto     the one of natural, rabbit and lp with the fewest estimated misses;
//	         natural without a look at the others where Promising denies it
//
// The name must be one that Check lets pass.
func New(name string, g graph.CSR) Choice {
	begin := time.Now()
	c := Choice{Name: "natural", NaturalMisses: Misses(g, nil)}
	c.Misses = c.NaturalMisses
	if name == "auto" {
		c.auto(g)
	} else if name != "natural" {
		c.take(name, g, 2) // more than any estimate
	}
	c.Seconds = time.Since(begin).Seconds()
	return c
}

const (
	// worth is the fraction of the natural order's misses that another must
	// reach to be preferred. Gathers follow the estimate loosely, and the
	// natural order costs nothing.
	worth = 0.9
	// enough is the fraction of misses below which nothing is gained: most of
	// a gather's time goes into rows that are in the cache.
	enough = 0.1
)

func (c *Choice) auto(g graph.CSR) {
	if c.NaturalMisses < enough || !Promising(g) {
		return
	}
	c.take("rabbit", g, worth*c.NaturalMisses)
	c.take("lp", g, min(c.Misses, worth*c.NaturalMisses))
	debug.FreeOSMemory() // what the orders took, before shards take theirs
}

// take makes the order called name, and keeps it if its misses are below.
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

// identity is 0..n-1.
func identity(n int) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(i)
	}
	return p
}
