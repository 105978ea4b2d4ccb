package config

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/halo/history"
	"siafu/internal/fault"
	"siafu/kernels/model"
)

// Kinds of --batch. Empty means Full.
const (
	Full      = "full"
	History   = "history"  // history:N
	Variates  = "variates" // variates:N,D
	Neighbour = "neighbor" // neighbor:D1,…,DL[,SIZE]
	Cluster   = "cluster"  // cluster:N[,Q]
	Saint     = "saint"    // saint:ROOTS[,LENGTH]

	Approximate = "approximate" // approximate:F
)

// Batching is the parsed --batch.
type Batching struct {
	Kind     string
	Count    int     // mini-batches of a rank, each a step of an epoch; 1 for Neighbour and Saint before Divide
	Samples  int     // Variates: sampled neighbours of a vertex
	Fanouts  []int   // Neighbour: sampled neighbours of a vertex, by layer from the input on
	Size     int     // Neighbour: training vertices of a rank in a step; Saint: random walks
	Walk     int     // Saint: steps of a walk
	Clusters int     // Cluster: number of clusters of a rank
	Joined   int     // Cluster: clusters in a mini-batch
	Share    float64 // Approximate: fraction of other ranks' vertices in a rank's only mini-batch
	// Cluster with pipelines: mini-batches in a step, else 0.
	Microbatches int
}

// DefaultSize is the batch size of Neighbour, as in DGL's GraphSAGE examples. DefaultWalk is the length
// of a walk of Saint, of most graphs in GraphSAINT's table 4.
const (
	DefaultSize = 1000
	DefaultWalk = 2
)

// Batching parses --batch. For Full and for invalid text the result has no Kind.
func (c *Config) Batching() Batching {
	kind, rest, said := strings.Cut(c.Batch, ":")
	if !said { // no allocation, because each epoch calls Batching
		return Batching{}
	}
	if kind == Approximate {
		if share, err := strconv.ParseFloat(rest, 64); err == nil && share > 0 && share <= 1 {
			return Batching{Kind: kind, Count: 1, Share: share}
		}
		return Batching{}
	}
	var n []int
	for _, text := range strings.Split(rest, ",") {
		x, err := strconv.Atoi(text)
		if err != nil || x < 1 || x > math.MaxInt32 {
			return Batching{}
		}
		n = append(n, x)
	}
	switch {
	case kind == History && len(n) == 1:
		return Batching{Kind: kind, Count: n[0]}
	case kind == Variates && len(n) == 2:
		return Batching{Kind: kind, Count: n[0], Samples: n[1]}
	case kind == Neighbour && (len(n) == c.gathers() || len(n) == c.gathers()+1):
		return Batching{Kind: kind, Count: max(c.DrawnSteps, 1), Fanouts: n[:c.gathers()], Size: append(n, DefaultSize)[c.gathers()]}
	case kind == Saint && len(n) <= 2:
		return Batching{Kind: kind, Count: max(c.DrawnSteps, 1), Size: n[0], Walk: append(n, DefaultWalk)[1]}
	case kind == Cluster && len(n) <= 2:
		joined := append(n, 1)[1]
		if joined <= n[0] {
			b := Batching{Kind: kind, Count: (n[0] + joined - 1) / joined, Clusters: n[0], Joined: joined}
			if c.Pipeline != "" && c.Microbatches > 0 && b.Count%c.Microbatches == 0 {
				b.Count, b.Microbatches = b.Count/c.Microbatches, c.Microbatches
			}
			return b
		}
	}
	return Batching{}
}

// gathers returns the number of layers that gather, in the networks that mini-batches support. It
// includes a first layer whose ÂX is cached.
func (c *Config) gathers() int {
	if c.kind().Takes(model.OptionHops) {
		return c.Hops
	}
	return c.Layers
}

// cachesInput reports whether mini-batches share a cached ÂX: those with a history do, if the first
// layer of s gathers.
func (c *Config) cachesInput(s model.Spec) bool {
	return c.Batches() > 0 && !c.Batching().Draws() && s.GathersInput()
}

// Draws reports whether each step samples its own vertices and edges, so that it uses
// nothing of other steps. The only step of Approximate is sampled once.
func (b Batching) Draws() bool {
	return slices.Contains([]string{Neighbour, Cluster, Saint, Approximate}, b.Kind)
}

// Batches returns the number of mini-batches per epoch on each rank, or 0 if an epoch is
// one pass over the whole graph.
func (c *Config) Batches() int { return c.Batching().Count }

// Samples returns the number of sampled neighbours per vertex in a mini-batch with a
// history, or 0 if all neighbours are gathered.
func (c *Config) Samples() int { return c.Batching().Samples }

// Steps returns the number of weight updates in the given number of epochs.
func (c *Config) Steps(epochs int) int { return epochs * max(c.Batches(), 1) }

// Divide sets the number of steps per epoch if each rank processes Size training vertices
// per step, or visits the vertices of Size walks. train and vertices are those of all ranks.
func (c *Config) Divide(train, vertices int64, ranks int) error {
	b := c.Batching()
	size, all, what := int64(b.Size), train, "training vertices"
	switch b.Kind {
	case Neighbour:
	case Saint:
		size, all, what = size*int64(1+b.Walk), vertices, "vertices"
	default:
		return nil
	}
	each := size * int64(max(ranks, 1))
	steps := max((all+each-1)/each, 1)
	c.DrawnSteps = int(min(steps, mostBatches+1))
	if c.DrawnSteps > mostBatches || c.Steps(c.Epochs) > mostEpochs {
		return fault.New(fault.Usage, "train", "", "--batch=%s makes %d steps per epoch with %d %s", c.Batch, steps, all, what).
			Then("use larger mini-batches: at most %d steps per epoch and %d in total", mostBatches, mostEpochs)
	}
	return nil
}

// HistoryRows returns the storage format of rows in histories.
func (c *Config) HistoryRows() history.Format {
	f, _ := history.FormatOf(c.HistoryFormat)
	return f
}

// mostBatches bounds the messages in which ranks agree on batches. It also keeps the number of
// updates within 32 bits.
const mostBatches = 1 << 16

// checkBatch returns a fault for an invalid --batch, or for too many mini-batches.
func (c *Config) checkBatch() error {
	b := c.Batching()
	switch {
	case c.Batch == "" || c.Batch == Full:
		return nil
	case c.kind().Relational: // whatever its form
		return fault.New(fault.Usage, "train", "", "--batch=%s with --model=%s", c.Batch, c.Model).Then(noRelations)
	case b.Count < 1 || max(b.Count, b.Clusters) > mostBatches:
		return fault.New(fault.Usage, "train", "", "--batch=%q with --model=%s, which gathers in %d layers", c.Batch, c.Model, c.gathers()).
			Then("it must be full; history:N; variates:N,D with D neighbours, 1 or more; neighbor:D,D with one number of neighbours per "+
				"layer that gathers and, optionally, the training vertices of a mini-batch after them; "+
				"cluster:N or cluster:N,Q with Q of N clusters in a mini-batch; saint:ROOTS or saint:ROOTS,LENGTH with walks of LENGTH "+
				"steps; approximate:F with a fraction F above 0 and at most 1; N is from 1 to %d", mostBatches)
	case c.Steps(c.Epochs)*max(b.Microbatches, 1) > mostEpochs:
		return fault.New(fault.Usage, "train", "", "--batch=%s with --epochs=%d", c.Batch, c.Epochs).
			Then("use at most %d mini-batches in total", mostEpochs)
	}
	return nil
}

// BatchNetwork returns the network of sampled mini-batches, which starts from the features
// of their vertices. The orders of net must be set.
func (c *Config) BatchNetwork(net model.Spec) model.Spec {
	net.Choose(model.Load{}, model.Choices{Order: c.Order, CacheInput: "off"})
	if c.Batching().Kind == Neighbour && c.Order == "auto" && !net.Attends() {
		net.Orders[0] = model.GatherFirst // the gather has fewer output rows than input rows
	}
	return net
}
