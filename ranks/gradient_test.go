package ranks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"siafu/graph"
	"siafu/internal/testkit/hosttest"
)

// smallGraph returns a random graph with two isolated vertices.
func smallGraph(directed, sparse bool, seed uint64) graph.Content {
	const n, dim, classes = 18, 5, 3
	rng := rand.New(rand.NewPCG(seed, 2))
	c := graph.Content{
		Name: "small", Vertices: n, Symmetrise: !directed, Classes: classes,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)},
		Labels:   make([]int32, n), Split: make([]uint8, n),
	}
	var pairs graph.EdgePairs
	for range 40 {
		if s, d := rng.Uint32N(n-2), rng.Uint32N(n-2); s != d {
			pairs = append(pairs, s, d)
		}
	}
	c.Edges = pairs
	for i := range c.Features.Dense {
		if !sparse || rng.IntN(6) == 0 {
			c.Features.Dense[i] = float32(rng.NormFloat64())
		}
	}
	for v := range c.Labels {
		c.Labels[v] = rng.Int32N(classes)
		c.Split[v] = uint8(rng.IntN(2)) // train or none
	}
	c.Split[0], c.Split[n-1] = graph.SplitTrain, graph.SplitTrain
	return c
}

// lopsided returns the owners of smallGraph's vertices among three ranks. Rank 1 owns nothing,
// and rank 2 the isolated vertices and one without an edge inside its partition.
func lopsided() []int {
	owner := make([]int, 18)
	owner[3], owner[16], owner[17] = 2, 2, 2
	return owner
}

// Every gradient of a distributed run is the gradient of the loss. One step of plain SGD moves
// each weight by its gradient times the rate. The rate is large, so that the difference of two
// float32 weights is exact enough.
//
// Central differences with h=1e-6 in float64 have errors of about 1e-9. The run's float32
// errors are a few units of 6e-8, relative to the largest terms of a sum.
func TestGradientsAgainstCentralDifferences(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for k, tc := range hosttest.ShareOf(t, 2, []struct {
		name             string
		directed, sparse bool
		set              func(*Config)
		lopsided         bool
		weighted         bool
		edgeDim          int // features of an edge
		relations        int // 0: the graph is not relational
	}{
		{name: "one rank"},
		{name: "one layer", set: func(c *Config) { c.Layers = 1; c.Ranks = 3 }},
		{name: "three layers", set: func(c *Config) { c.Layers, c.Ranks = 3, 4 }},
		{name: "directed", directed: true, set: func(c *Config) { c.Ranks = 4 }},
		{name: "directed three layers without servers", directed: true, set: func(c *Config) { c.Layers, c.Ranks, c.Servers = 3, 4, 0 }},
		{name: "two servers", set: func(c *Config) { c.Ranks, c.Servers = 5, 2 }},
		{name: "gather first", directed: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "off" }},
		{name: "gather first kept", directed: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "on" }},
		{name: "apply first", directed: true, set: func(c *Config) { c.Ranks, c.Order = 4, "apply-first" }},
		{name: "sparse apply first", sparse: true, directed: true, set: func(c *Config) { c.Ranks, c.Order = 4, "apply-first" }},
		{name: "sparse gather first", sparse: true, directed: true,
			set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "off" }},
		{name: "sparse kept", sparse: true, set: func(c *Config) { c.Ranks, c.CacheInput, c.Order = 4, "on", "gather-first" }},
		{name: "no overlap", directed: true, set: func(c *Config) { c.Ranks, c.Mode = 4, "nopipe" }},
		{name: "zstd", directed: true, set: func(c *Config) { c.Ranks, c.Codec = 4, "zstd" }},
		{name: "empty partition", lopsided: true, set: func(c *Config) { c.Ranks, c.Servers = 3, 0 }},
		{name: "empty partition directed", directed: true, lopsided: true, set: func(c *Config) { c.Ranks = 4 }},
		{name: "weights", weighted: true},
		{name: "weights directed", weighted: true, directed: true, set: func(c *Config) { c.Ranks, c.Layers = 4, 3 }},
		{name: "weights kept", weighted: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "on" }},
		{name: "weights empty partition", weighted: true, lopsided: true, set: func(c *Config) { c.Ranks, c.Servers = 3, 0 }},
		{name: "weights sage", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage", 4, 3 }},
		{name: "weights sage kept", weighted: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "sage", 3, "gather-first", "on" }},
		{name: "weights gin", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order = "gin", 4, "apply-first" }},
		{name: "weights gcnii", weighted: true, directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Alpha = "gcnii", 4, 3, 0.3 }},
		{name: "weights appnp", weighted: true, set: func(c *Config) { c.Model, c.Ranks, c.Hops = "appnp", 3, 2 }},
		{name: "weights sgc", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "sgc", 4, "off" }},
		{name: "weights sign kept", weighted: true, directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.CacheInput = "sign", 4, 2, "on" }},
		{name: "weights gat", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks = "gat", 2, 3 }},
		{name: "sage", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage", 4, 3 }},
		{name: "sage gather first", directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "sage", 4, "gather-first", "off" }},
		{name: "sage kept", set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "sage", 3, "gather-first", "on" }},
		{name: "sage apply first", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order = "sage", 4, "apply-first" }},
		{name: "sage sparse apply first", sparse: true, directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Order = "sage", 4, "apply-first" }},
		{name: "sage sparse kept", sparse: true,
			set: func(c *Config) { c.Model, c.Ranks, c.CacheInput, c.Order = "sage", 4, "on", "gather-first" }},
		{name: "sage empty partition", lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers = "sage", 3, 0 }},
		{name: "sage one layer", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage", 4, 1 }},
		{name: "sage-max", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage-max", 4, 3 }},
		{name: "sage-max sparse not kept", sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "sage-max", 3, "off" }},
		{name: "sage-max kept", set: func(c *Config) { c.Model, c.CacheInput, c.Layers = "sage-max", "on", 3 }},
		{name: "sage-max add empty partition", lopsided: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.Layers, c.Residual = "sage-max", 3, 0, 3, "add" }},
		{name: "sage-pool", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage-pool", 4, 3 }},
		{name: "sage-pool narrow sparse", sparse: true, directed: true,
			set: func(c *Config) { c.Model, c.PoolHidden, c.Ranks = "sage-pool", 2, 3 }},
		{name: "gcn computed ghosts", directed: true,
			set: func(c *Config) { c.Ranks, c.CacheInput, c.RecomputeGhosts, c.Layers = 4, "on", "all", 3 }},
		{name: "weights gcn ghosts of three hops", weighted: true, directed: true,
			set: func(c *Config) { c.Ranks, c.RecomputeGhosts, c.Layers, c.Order = 3, "all", 3, "apply-first" }},
		{name: "sage ghosts of two hops", sparse: true, directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.RecomputeGhosts = "sage", 3, "all" }},
		{name: "sage computed ghosts", set: func(c *Config) { c.Model, c.Ranks, c.CacheInput, c.RecomputeGhosts = "sage", 4, "on", "all" }},
		{name: "appnp computed ghosts", directed: true,
			set: func(c *Config) { c.Model, c.Hops, c.Ranks, c.RecomputeGhosts = "appnp", 2, 3, "all" }},
		{name: "gcnii computed ghosts", set: func(c *Config) { c.Model, c.Ranks, c.RecomputeGhosts = "gcnii", 3, "all" }},
		{name: "sage-pool computed ghosts", directed: true,
			set: func(c *Config) { c.Model, c.PoolHidden, c.Ranks, c.RecomputeGhosts = "sage-pool", 6, 4, "all" }},
		{name: "sage-pool ghosts of three hops", directed: true,
			set: func(c *Config) { c.Model, c.Layers, c.Ranks, c.RecomputeGhosts = "sage-pool", 3, 4, "all" }},
		{name: "sage-max ghosts of three hops", sparse: true,
			set: func(c *Config) { c.Model, c.Layers, c.Ranks, c.RecomputeGhosts = "sage-max", 3, 4, "all" }},
		{name: "sage ghosts of four hops", directed: true,
			set: func(c *Config) { c.Model, c.Layers, c.Ranks, c.RecomputeGhosts = "sage", 4, 4, "all" }},
		{name: "gat ghosts of three hops", directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Layers, c.Ranks, c.RecomputeGhosts = "gat", 2, 3, 4, "all" }},
		{name: "gat ghosts empty partition", lopsided: true, set: func(c *Config) {
			c.Model, c.OutputHeads, c.Ranks, c.Servers, c.RecomputeGhosts = "gat", 2, 3, 0, "all"
		}},
		{name: "weights gatv2 ghosts of three hops", weighted: true, directed: true, set: func(c *Config) {
			c.Model, c.Heads, c.Layers, c.Ranks, c.RecomputeGhosts = "gatv2", 2, 3, 4, "all"
		}},
		{name: "edge features gatv2 ghosts of three hops", edgeDim: 3, directed: true, set: func(c *Config) {
			c.Model, c.Heads, c.Layers, c.Ranks, c.RecomputeGhosts = "gatv2", 2, 3, 4, "all"
		}},
		{name: "gatv2 computed ghosts", set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.RecomputeGhosts = "gatv2", 2, 3, "layers:1" }},
		{name: "gcn add ghosts of four hops", directed: true,
			set: func(c *Config) { c.Residual, c.Layers, c.Ranks, c.RecomputeGhosts = "add", 4, 4, "all" }},
		{name: "gat initial ghosts of three hops", set: func(c *Config) {
			c.Model, c.Residual, c.Layers, c.Ranks, c.RecomputeGhosts = "gat", "initial", 3, 4, "all"
		}},
		{name: "gcnii ghosts of three hops", directed: true,
			set: func(c *Config) { c.Model, c.Layers, c.Ranks, c.RecomputeGhosts = "gcnii", 3, 4, "all" }},
		{name: "sign computed ghosts", directed: true, set: func(c *Config) {
			c.Model, c.Powers, c.CacheInput, c.Ranks, c.RecomputeGhosts = "sign", 3, "off", 4, "all"
		}},
		{name: "sage-pool empty partition", lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers = "sage-pool", 3, 0 }},
		{name: "sage-pool one layer no overlap", directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Mode = "sage-pool", 4, 1, "nopipe" }},
		{name: "sage-pool l2", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage-pool", "l2", 4, 3 }},
		{name: "gin", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "gin", 4, 3 }},
		{name: "gin not kept", set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "gin", 3, "off" }},
		{name: "gin sparse", sparse: true, set: func(c *Config) { c.Model, c.Ranks = "gin", 4 }},
		{name: "gin gather first", directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "gin", 4, "gather-first", "off" }},
		{name: "gin kept", set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "gin", 3, "gather-first", "on" }},
		{name: "gin apply first", directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Order = "gin", 4, 3, "apply-first" }},
		{name: "gin sparse apply first", sparse: true, directed: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Order = "gin", 4, "apply-first" }},
		{name: "gin empty partition", lopsided: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.Order = "gin", 3, 0, "apply-first" }},
		{name: "gat one rank", set: func(c *Config) { c.Model, c.Heads, c.Layers = "gat", 2, 2 }},
		{name: "gat", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gat", 3, 4, 3 }},
		{name: "gat output heads", set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks = "gat", 2, 3, 4 }},
		{name: "gat sparse no overlap", sparse: true, directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Mode = "gat", 2, 4, "nopipe" }},
		{name: "gat empty partition", lopsided: true, directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Servers = "gat", 2, 3, 0 }},
		{name: "gat one layer", set: func(c *Config) { c.Model, c.Layers, c.Ranks, c.OutputHeads = "gat", 1, 3, 2 }},
		{name: "gatv2 one rank", set: func(c *Config) { c.Model, c.Heads, c.Layers = "gatv2", 2, 2 }},
		{name: "gatv2", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gatv2", 3, 4, 3 }},
		{name: "gatv2 output heads sparse", sparse: true,
			set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks = "gatv2", 2, 3, 4 }},
		{name: "gatv2 empty partition", lopsided: true, directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Servers = "gatv2", 2, 3, 0 }},
		{name: "weights gatv2", weighted: true, directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gatv2", 2, 3, 3 }},
		{name: "edge features gatv2 directed", edgeDim: 3, directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gatv2", 2, 3, 3 }},
		{name: "edge features gatv2", edgeDim: 2, set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks = "gatv2", 2, 2, 4 }},
		{name: "edge features gatv2 plain Go", edgeDim: 4, set: func(c *Config) { c.Model, c.Kernel, c.Ranks = "gatv2", "go", 3 }},
		{name: "edge features gatv2 empty partition", edgeDim: 3, lopsided: true, directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Servers = "gatv2", 2, 3, 0 }},
		{name: "edge features gcn", edgeDim: 3, set: func(c *Config) { c.Ranks = 3 }},
		{name: "gcn and sage", directed: true, set: func(c *Config) { c.LayerKinds, c.Ranks, c.Layers = "gcn,sage", 4, 4 }},
		{name: "weights sage, mlp and gin kept", weighted: true, set: func(c *Config) {
			c.Model, c.LayerKinds, c.Ranks, c.Layers, c.CacheInput = "sage", "sage,mlp,gin", 3, 4, "on"
		}},
		{name: "gin and gcn ghosts of three hops", directed: true, set: func(c *Config) {
			c.Model, c.LayerKinds, c.Ranks, c.Layers, c.RecomputeGhosts = "gin", "gin,gcn", 4, 3, "all"
		}},
		{name: "perceptron", set: func(c *Config) { c.Model, c.Layers, c.Ranks = "mlp", 3, 4 }},
		{name: "sparse perceptron", sparse: true, set: func(c *Config) { c.Model, c.Ranks = "mlp", 3 }},
		{name: "gcnii", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Alpha = "gcnii", 4, 3, 0.3 }},
		{name: "gcnii sparse no overlap", sparse: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Mode = "gcnii", 3, 2, "nopipe" }},
		{name: "appnp", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Hops = "appnp", 4, 3 }},
		{name: "appnp sparse empty partition", sparse: true, lopsided: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.Hops = "appnp", 3, 0, 2 }},
		{name: "sgc", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "sgc", 4, "off" }},
		{name: "sgc kept", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.CacheInput = "sgc", 4, 3, "on" }},
		{name: "sgc kept empty partition", sparse: true, lopsided: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.CacheInput = "sgc", 3, 0, "on" }},
		{name: "sign", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.CacheInput = "sign", 3, 2, "off" }},
		{name: "sign kept", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.CacheInput = "sign", 3, 3, "on" }},
		{name: "sign sparse kept", sparse: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.Layers, c.CacheInput = "sign", 4, 2, 3, "on" }},
		{name: "sgc sparse of one step", sparse: true,
			set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.CacheInput = "sgc", 3, 1, "off" }},
		{name: "gcn add", directed: true, set: func(c *Config) { c.Residual, c.Ranks, c.Layers = "add", 4, 4 }},
		{name: "gcn initial kept", directed: true, set: func(c *Config) {
			c.Residual, c.Ranks, c.Layers, c.Order, c.CacheInput = "initial", 3, 4, "gather-first", "on"
		}},
		{name: "sage add", set: func(c *Config) { c.Model, c.Residual, c.Ranks, c.Layers = "sage", "add", 4, 3 }},
		{name: "gin initial", directed: true, set: func(c *Config) { c.Model, c.Residual, c.Ranks, c.Layers = "gin", "initial", 4, 3 }},
		{name: "gat add", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Residual, c.Ranks, c.Layers = "gat", 2, "add", 4, 3 }},
		{name: "gat initial", set: func(c *Config) { c.Model, c.Heads, c.Residual, c.Ranks, c.Layers = "gat", 2, "initial", 3, 4 }},
		{name: "gcn gelu", directed: true, set: func(c *Config) { c.Activation, c.Ranks, c.Layers = "gelu", 4, 3 }},
		{name: "gat leaky", set: func(c *Config) { c.Model, c.Heads, c.Activation, c.Ranks = "gat", 2, "leaky", 3 }},
		{name: "perceptron elu", sparse: true, set: func(c *Config) { c.Model, c.Activation, c.Ranks = "mlp", "elu", 3 }},
		{name: "gcn prelu", set: func(c *Config) { c.Activation, c.Ranks, c.Layers = "prelu", 4, 3 }},
		{name: "gcn cat", directed: true, set: func(c *Config) { c.Jumping, c.Ranks, c.Layers = "cat", 4, 3 }},
		{name: "sage cat add", set: func(c *Config) { c.Model, c.Jumping, c.Residual, c.Ranks, c.Layers = "sage", "cat", "add", 3, 3 }},
		{name: "gat max batch", directed: true,
			set: func(c *Config) { c.Model, c.Heads, c.Jumping, c.Norm, c.Ranks = "gat", 2, "max", "batch", 4 }},
		{name: "gcn max of one", sparse: true, set: func(c *Config) { c.Jumping, c.Activation, c.Ranks, c.Layers = "max", "gelu", 3, 1 }},
		{name: "gcn layer", directed: true, set: func(c *Config) { c.Norm, c.Ranks, c.Layers = "layer", 4, 3 }},
		{name: "sage batch", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage", "batch", 4, 3 }},
		{name: "gcn batch without servers", lopsided: true,
			set: func(c *Config) { c.Norm, c.Ranks, c.Servers, c.Activation = "batch", 3, 0, "gelu" }},
		{name: "gat batch no overlap", set: func(c *Config) { c.Model, c.Heads, c.Norm, c.Ranks, c.Mode = "gat", 2, "batch", 4, "nopipe" }},
		{name: "sage l2", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage", "l2", 4, 3 }},
		{name: "sage ball", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage", "ball", 4, 3 }},
		{name: "sage-max l2 one layer", sparse: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage-max", "l2", 3, 1 }},
		{name: "sage l2 add gelu", lopsided: true, set: func(c *Config) {
			c.Model, c.Norm, c.Residual, c.Activation, c.Ranks, c.Servers, c.Layers = "sage", "l2", "add", "gelu", 3, 0, 3
		}},
		{name: "gcn l2 cat", directed: true, set: func(c *Config) { c.Norm, c.Jumping, c.Ranks, c.Layers = "l2", "cat", 4, 3 }},
		{name: "gin pair", directed: true,
			set: func(c *Config) { c.Model, c.Norm, c.Residual, c.Ranks, c.Layers = "gin", "pair", "add", 4, 3 }},
		{name: "rgcn one rank", relations: 4, set: func(c *Config) { c.Model = "rgcn" }},
		{name: "rgcn one relation", relations: 1, sparse: true, set: func(c *Config) { c.Model, c.Ranks = "rgcn", 3 }},
		{name: "rgcn three layers", relations: 12, sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "rgcn", 4, 3 }},
		{name: "rgcn bases", relations: 5, set: func(c *Config) { c.Model, c.Bases, c.Ranks, c.Layers = "rgcn", 2, 3, 3 }},
		{name: "rgcn bases not projected", relations: 3,
			set: func(c *Config) { c.Model, c.Bases, c.Ranks, c.Project, c.Servers = "rgcn", 1, 4, "off", 0 }},
		{name: "rgcn blocks", relations: 6, sparse: true,
			set: func(c *Config) { c.Model, c.Blocks, c.Hidden, c.Ranks, c.Layers = "rgcn", 3, 6, 4, 3 }},
		{name: "rgcn not projected", relations: 7,
			set: func(c *Config) { c.Model, c.Project, c.Ranks, c.Layers = "rgcn", "off", 4, 3 }},
		{name: "rgcn one layer not projected", relations: 3,
			set: func(c *Config) { c.Model, c.Project, c.Ranks, c.Layers = "rgcn", "off", 3, 1 }},
		{name: "rgcn sparse not projected", relations: 4, sparse: true,
			set: func(c *Config) { c.Model, c.Project, c.Ranks = "rgcn", "off", 3 }},
		{name: "rgcn empty partition", relations: 8, lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers = "rgcn", 3, 0 }},
		{name: "rgcn bases empty partition no overlap", relations: 8, lopsided: true,
			set: func(c *Config) { c.Model, c.Bases, c.Ranks, c.Mode = "rgcn", 3, 4, "nopipe" }},
		{name: "rgcn without relations", directed: true, set: func(c *Config) { c.Model, c.Ranks = "rgcn", 4 }},
		{name: "rgcn batch add", relations: 4,
			set: func(c *Config) { c.Model, c.Norm, c.Residual, c.Ranks, c.Layers = "rgcn", "batch", "add", 3, 3 }},
		{name: "rgcn cat plain Go", relations: 4,
			set: func(c *Config) { c.Model, c.Jumping, c.Kernel, c.Ranks, c.Layers = "rgcn", "cat", "go", 3, 3 }},
		{name: "rgcn computed ghosts", relations: 5,
			set: func(c *Config) { c.Model, c.Ranks, c.RecomputeGhosts, c.Layers = "rgcn", 3, "layers:1", 3 }},
		{name: "rgcn ghosts of three hops", relations: 5,
			set: func(c *Config) { c.Model, c.Ranks, c.RecomputeGhosts, c.Layers = "rgcn", 3, "all", 3 }},
		{name: "rgcn some ghosts of two hops", relations: 5,
			set: func(c *Config) { c.Model, c.Ranks, c.RecomputeGhosts, c.Layers = "rgcn", 4, "layers:1.5", 3 }},
		{name: "rgcn some ghosts", relations: 3,
			set: func(c *Config) { c.Model, c.Ranks, c.RecomputeGhosts, c.Layers = "rgcn", 3, "layers:0.5", 3 }},
		{name: "rgcn not projected ghosts of two hops", relations: 5,
			set: func(c *Config) { c.Model, c.Project, c.Ranks, c.RecomputeGhosts = "rgcn", "off", 4, "all" }},
		{name: "rgcn bases ghosts of two hops", relations: 5,
			set: func(c *Config) { c.Model, c.Bases, c.Ranks, c.RecomputeGhosts, c.Layers = "rgcn", 2, 3, "layers:2", 3 }},
		{name: "rgcn more classes than columns", relations: 4, set: func(c *Config) { c.Model, c.Hidden = "rgcn", 2 }},
		{name: "rgcn bases more classes than columns", relations: 7, sparse: true,
			set: func(c *Config) { c.Model, c.Hidden, c.Bases, c.Ranks, c.Layers = "rgcn", 2, 2, 4, 3 }},
		{name: "rgcn wide layer not projected computed ghosts", relations: 5, set: func(c *Config) {
			c.Model, c.Hidden, c.Project, c.Ranks, c.RecomputeGhosts, c.Recompute = "rgcn", 9, "off", 3, "all", true
		}},
		{name: "rgcn more classes than columns some ghosts", relations: 5, lopsided: true, set: func(c *Config) {
			c.Model, c.Hidden, c.Ranks, c.Servers, c.RecomputeGhosts, c.Layers = "rgcn", 2, 3, 0, "layers:0.5", 1
		}},
		{name: "rgcn intervals without labels", relations: 6, set: func(c *Config) { c.Model, c.Intervals, c.Layers = "rgcn", 6, 3 }},
		{name: "rgcn intervals without labels last add", relations: 6, set: func(c *Config) {
			c.Model, c.Intervals, c.Layers, c.Jumping, c.Residual, c.Ranks = "rgcn", 4, 3, "last", "add", 2
		}},
		{name: "rgcn intervals without labels cat", relations: 6, set: func(c *Config) {
			c.Model, c.Intervals, c.Layers, c.Jumping, c.Memory = "rgcn", 6, 3, "cat", "1GB"
		}},
		{name: "rgcn more classes than columns intervals", relations: 4, set: func(c *Config) {
			c.Model, c.Hidden, c.Intervals, c.Memory, c.Ranks = "rgcn", 2, 5, "1GB", 2
		}},
		{name: "hgn intervals without labels", relations: 6, set: func(c *Config) {
			c.Model, c.Intervals, c.Heads, c.OutputHeads = "hgn", 6, 2, 2
		}},
		{name: "rgat intervals without labels", relations: 6, set: func(c *Config) {
			c.Model, c.Intervals, c.Heads, c.OutputHeads = "rgat", 6, 2, 2
		}},
		{name: "gcn with relations intervals", relations: 6, set: func(c *Config) { c.Intervals, c.Order = 6, "gather-first" }},
		{name: "hgn one rank", relations: 4, set: func(c *Config) { c.Model, c.Heads = "hgn", 2 }},
		{name: "hgn three layers", relations: 12, sparse: true,
			set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks, c.Layers = "hgn", 2, 2, 4, 3 }},
		{name: "hgn not projected computed ghosts", relations: 5, set: func(c *Config) {
			c.Model, c.Project, c.Ranks, c.RecomputeGhosts = "hgn", "off", 3, "all"
		}},
		{name: "hgn some ghosts empty partition", relations: 3, lopsided: true, set: func(c *Config) {
			c.Model, c.Heads, c.RecomputeGhosts, c.Ranks, c.Servers = "hgn", 2, "layers:0.5", 3, 0
		}},
		{name: "hgn norm no overlap", relations: 4, set: func(c *Config) {
			c.Model, c.Norm, c.Residual, c.Layers, c.Mode, c.Ranks = "hgn", "layer", "add", 3, "nopipe", 3
		}},
		{name: "hgn edges one rank", relations: 4, set: func(c *Config) { c.Model, c.EdgeResidual, c.Heads, c.Layers = "hgn", 0.3, 2, 3 }},
		{name: "hgn edges four layers", relations: 7, sparse: true, set: func(c *Config) {
			c.Model, c.EdgeResidual, c.Heads, c.OutputHeads, c.Ranks, c.Layers = "hgn", 0.4, 2, 3, 4, 4
		}},
		{name: "hgn edges last computed ghosts", relations: 5, set: func(c *Config) {
			c.Model, c.EdgeResidual, c.Jumping, c.Layers, c.Ranks, c.RecomputeGhosts = "hgn", 0.5, "last", 3, 3, "all"
		}},
		{name: "hgn edges some ghosts recompute", relations: 3, set: func(c *Config) {
			c.Model, c.EdgeResidual, c.Layers, c.Heads, c.RecomputeGhosts, c.Ranks, c.Recompute = "hgn", 0.3, 3, 2, "layers:0.5", 2, true
		}},
		{name: "hgn edges many heads plain Go", relations: 3, lopsided: true, set: func(c *Config) {
			c.Model, c.EdgeResidual, c.Layers, c.Heads, c.Ranks, c.Servers, c.Hidden, c.Kernel = "hgn", 0.3, 3, 9, 3, 0, 1, "go"
		}},
		{name: "hgn edges not projected norm intervals", relations: 4, set: func(c *Config) {
			c.Model, c.EdgeResidual, c.Project, c.Norm, c.Layers, c.Intervals, c.Ranks = "hgn", 0.3, "off", "layer", 3, 4, 2
		}},
		{name: "rgat one rank", relations: 4, set: func(c *Config) { c.Model, c.Heads = "rgat", 2 }},
		{name: "rgat three layers", relations: 7, sparse: true,
			set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks, c.Layers = "rgat", 2, 2, 4, 3 }},
		{name: "rgat not projected computed ghosts", relations: 5, set: func(c *Config) {
			c.Model, c.Project, c.Ranks, c.RecomputeGhosts = "rgat", "off", 3, "all"
		}},
		{name: "rgat some ghosts plain Go", relations: 3, set: func(c *Config) {
			c.Model, c.Heads, c.RecomputeGhosts, c.Ranks, c.Kernel = "rgat", 2, "layers:0.5", 3, "go"
		}},
		{name: "rgat without relations recompute", directed: true,
			set: func(c *Config) { c.Model, c.Recompute, c.Ranks = "rgat", true, 3 }},
		{name: "rgat softmax one rank", relations: 4, set: func(c *Config) { c.Model, c.Softmax, c.Heads = "rgat", "relation", 2 }},
		{name: "rgat softmax three layers", relations: 7, sparse: true, set: func(c *Config) {
			c.Model, c.Softmax, c.Heads, c.OutputHeads, c.Ranks, c.Layers = "rgat", "relation", 2, 2, 4, 3
		}},
		{name: "rgat softmax not projected computed ghosts", relations: 5, set: func(c *Config) {
			c.Model, c.Softmax, c.Project, c.Ranks, c.RecomputeGhosts = "rgat", "relation", "off", 3, "all"
		}},
		{name: "rgat softmax some ghosts empty partition", relations: 3, lopsided: true, set: func(c *Config) {
			c.Model, c.Softmax, c.Heads, c.RecomputeGhosts, c.Ranks, c.Servers = "rgat", "relation", 2, "layers:0.5", 3, 0
		}},
		{name: "rgat softmax plain Go recompute", relations: 4, set: func(c *Config) {
			c.Model, c.Softmax, c.Recompute, c.Ranks, c.Kernel = "rgat", "relation", true, 2, "go"
		}},
		{name: "rgat softmax intervals without labels", relations: 6, set: func(c *Config) {
			c.Model, c.Softmax, c.Intervals, c.Heads, c.Jumping, c.Ranks = "rgat", "relation", 6, 2, "last", 2
		}},
		{name: "rgat softmax without relations", directed: true,
			set: func(c *Config) { c.Model, c.Softmax, c.Ranks = "rgat", "relation", 3 }},
		{name: "gcn with relations", relations: 4, set: func(c *Config) { c.Ranks = 3 }},
		{name: "sage with relations projected", relations: 4, sparse: true,
			set: func(c *Config) { c.Model, c.Project, c.Ranks = "sage", "on", 3 }},
		{name: "perceptron add", set: func(c *Config) { c.Model, c.Residual, c.Layers, c.Ranks = "mlp", "add", 4, 3 }},
	}) {
		for seed := range uint64(2) {
			if seed != uint64(k%2) && !hosttest.Big() {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", tc.name, seed), func(t *testing.T) {
				c := quick(t)
				c.Hidden, c.Dropout, c.Epochs, c.Seed = 4, 0, 1, seed+1
				c.Optimizer, c.LR, c.Momentum, c.WeightDecay, c.InnerDecay = "sgd", 1024, 0, 0, 0
				if tc.set != nil {
					tc.set(&c)
				}
				tested[c.Model] = true
				content := smallGraph(tc.directed, tc.sparse, seed)
				if tc.weighted {
					content.Edges = heavy{content.Edges.(graph.EdgePairs)}
				}
				if tc.edgeDim > 0 {
					content.Edges = described{content.Edges.(graph.EdgePairs), tc.edgeDim}
				}
				if tc.relations > 0 {
					content = relatedGraph(tc.relations, tc.sparse, seed)
				}
				data := write(t, content)
				if tc.lopsided {
					partitionBy(t, data, "", 3, lopsided()...)
				}
				checkGradient(t, c, content, data)
			})
		}
	}
	for _, kind := range referenceKinds {
		if !tested[kind] {
			t.Errorf("no gradient of network %s is in the list of this test", kind)
		}
	}
}
