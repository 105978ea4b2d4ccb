package order

import (
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
)

// Names are the orders that New supports.
const Names = "auto, natural, lp, rabbit"

// Choice is an order of vertices and its estimated benefit.
type Choice struct {
	Name string `json:"name"` // the chosen order, never auto
	// NaturalMisses and Misses are the results of the function Misses for the natural order and for
	// this order: the fraction of edges that miss the cache.
	NaturalMisses float64 `json:"natural_misses"`
	Misses        float64 `json:"misses"`
	// Vertices contains all vertices in this order. It is nil if the order is natural.
	Vertices []uint32 `json:"-"`
	// Seconds is the time that New took. It is not stored, so that equal partitionings produce equal
	// files.
	Seconds float64 `json:"-"`
}

// Check returns a Usage fault if New does not support the name.
func Check(name string) error {
	for known := range strings.SplitSeq(Names, ", ") {
		if name == known {
			return nil
		}
	}
	return fault.New(fault.Usage, "order vertices", "", "unknown vertex order %q", name).Then("%s", Remedy(name))
}

// Remedy returns what to choose in place of a name that New does not support.
func Remedy(name string) string {
	if name == "rcm" {
		return "use rabbit or natural: reverse Cuthill-McKee is no longer available"
	}
	return "use one of " + Names
}

// New orders the vertices of g:
//
//	natural  ascending ids
//	lp       nested communities found by label propagation
//	rabbit   hierarchical communities of rising modularity
//	auto     natural, rabbit or lp: the order with the fewest estimated misses.
//	         auto selects natural without computing the others if Promising returns false
//
// Check must accept the name. New panics for other names.
func New(name string, g graph.CSR) Choice {
	begin := time.Now()
	c := Choice{Name: "natural", NaturalMisses: Misses(g, nil)}
	c.Misses = c.NaturalMisses
	if name == "auto" {
		c.auto(g)
	} else if name != "natural" {
		c.try(name, g, 2) // keeps the order, because misses never exceed 1
	}
	c.Seconds = time.Since(begin).Seconds()
	return c
}

const (
	// maxMissRatio is the maximum ratio of another order's misses to the misses of the natural
	// order. auto prefers the other order only below this ratio. The estimate predicts the time of
	// a gather only roughly, and the natural order needs no computation.
	maxMissRatio = 0.9
	// fewMisses is the fraction of misses below which auto keeps the natural order. Nearly all rows
	// are then in the cache, and another order saves no time.
	fewMisses = 0.1
)

// auto selects the order with the fewest misses, as New describes.
func (c *Choice) auto(g graph.CSR) {
	if c.NaturalMisses < fewMisses || !Promising(g) {
		return
	}
	c.try("rabbit", g, maxMissRatio*c.NaturalMisses)
	c.try("lp", g, min(c.Misses, maxMissRatio*c.NaturalMisses))
}

// try computes the order called name. It sets c to this order if its misses are below the given
// value.
func (c *Choice) try(name string, g graph.CSR, below float64) {
	vertices := create(name, g)
	if m := Misses(g, vertices); m < below {
		c.Name, c.Vertices, c.Misses = name, vertices, m
	}
}

func create(name string, g graph.CSR) []uint32 {
	switch name {
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
