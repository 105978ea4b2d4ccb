package pairs

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// HoldOutOptions select the edges to hold out.
type HoldOutOptions struct {
	Split     string `default:"85/5/10" placeholder:"TRAIN/VAL/TEST" help:"Percent of connected pairs for training, validation and test. Pairs for training stay in the graph."`
	Negatives int    `default:"0" help:"Negative pairs in each split; 0: the number of positive pairs. Kipf & Welling 2016 use equal numbers."`
	Ranked    int    `default:"1000" help:"Number of candidate vertices to rank each held-out edge with, for MRR; 0: none. Candidates differ, and none is adjacent to the edge's source; if there are fewer, all are ranked."`
	Seed      uint64 `default:"1" help:"Seed of all random samples."`

	Val            string                           `placeholder:"FILE" help:"File of the validation edges; without it they are sampled. Text with columns src and dst, .npy, .npz, or a .pt split file of the Open Graph Benchmark, which may contain negatives."`
	Test           string                           `placeholder:"FILE" help:"File of the test edges, in a format of --val."`
	ValNegatives   string                           `name:"val-not" placeholder:"FILE" help:"File of the negative pairs for validation, in a format of --val. Empty: negatives in --val, else --negatives random pairs."`
	TestNegatives  string                           `name:"test-not" placeholder:"FILE" help:"File of the negative pairs for the test, as --val-not."`
	ValCandidates  string                           `name:"val-each" placeholder:"FILE" help:"File of the candidate vertices to rank each validation edge with. Text with the same number of ids in each line, or an .npy array; one row for each edge."`
	TestCandidates string                           `name:"test-each" placeholder:"FILE" help:"File of the candidate vertices for the test, as --val-each."`
	Log            func(format string, args ...any) `kong:"-"` // nil: silent

	KeepHeld bool `help:"Keep edges of --val and --test that are in the graph. The Open Graph Benchmark keeps them."`
}

const opHoldOut = "hold out"

func usage(remedy, format string, args ...any) error {
	return fault.New(fault.Usage, opHoldOut, "", format, args...).Then("%s", remedy)
}

// shares returns the fractions of validation and test in Split.
func (o *HoldOutOptions) shares() (val, test float64, err error) {
	of, ok := graph.ParsePercentages(o.Split)
	if (o.Val == "") != (o.Test == "") {
		return 0, 0, usage("give both, or neither for randomly held-out edges", "--val=%s --test=%s", o.Val, o.Test)
	}
	if o.Val == "" && (o.ValNegatives+o.TestNegatives+o.ValCandidates+o.TestCandidates != "" || o.KeepHeld) {
		return 0, 0, usage("give the edges with --val and --test", "negatives or --keep-held without edges")
	}
	if !ok {
		return 0, 0, usage("give three percentages above 0 that add up to 100, such as 85/5/10", "--split=%s", o.Split)
	}
	if o.Negatives < 0 || o.Ranked < 0 {
		return 0, 0, usage("set 0 or more", "--negatives=%d --ranked=%d", o.Negatives, o.Ranked)
	}
	return of[1] / 100, of[2] / 100, nil
}

// HoldOut creates the dataset folder dst from the dataset in dir. With force it replaces an
// existing dataset folder. Faults have kind Usage for invalid options, Data for a graph with
// too few or too many edges, or the kinds of graph.Open and graph.Write.
func HoldOut(dir, dst string, o HoldOutOptions, force bool) (*graph.WriteReport, error) {
	val, test, err := o.shares()
	if err != nil {
		return nil, err
	}
	if err := graph.CheckTarget(dst, force); err != nil {
		return nil, err
	}
	ds, err := graph.Open(dir)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	if ds.Meta.Task == graph.Links {
		return nil, fault.New(fault.Usage, opHoldOut, dir, "it already has held-out edges").Then("use the dataset that it was created from")
	}
	if ds.Meta.Relations != nil {
		h, rest, err := holdTriples(ds, o, [2]float64{val, test})
		if err != nil {
			return nil, err
		}
		c := (&drawer{ds: ds}).content(h, o)
		c.Edges, c.Relations = graph.EachRelation(rest.EachRelation), ds.Meta.Relations
		return graph.Write(dst, c, force)
	}
	d := &drawer{ds: ds, rng: rand.New(rand.NewPCG(o.Seed, 0))}
	held := &graph.HeldOut{Ranked: o.Ranked}
	if o.Val == "" {
		err = d.draw(held, o, val, test)
	} else {
		err = d.read(held, o)
	}
	if err == nil {
		err = d.requireNegatives(held, o.Negatives)
	}
	if err != nil {
		return nil, err
	}
	for _, h := range []*graph.Held{&held.Val, &held.Test} {
		if err := d.negatives(h, o.Negatives, held.Ranked); err != nil {
			return nil, err
		}
	}
	return graph.Write(dst, d.content(held, o), force)
}

// content returns the dataset without the held-out edges. It has no labels, and all vertices
// are in the training set.
func (d *drawer) content(h *graph.HeldOut, o HoldOutOptions) graph.Content {
	m, n := d.ds.Meta, int(d.ds.Meta.Vertices)
	without := remaining{d.ds, d.taken}
	c := graph.Content{
		Licence: m.Licence, Synthetic: m.Synthetic, Vertices: m.Vertices,
		Source: strings.TrimPrefix(m.Source+", "+o.source(), ", "),
		Edges:  without, Features: d.ds.Features, Normalize: m.Normalized, Table: m.Table, EdgeImport: m.EdgeImport, SelfLoops: m.SelfLoops,
		Repeated: m.Repeated, IDs: d.ds.IDs,
		Task: graph.Links, Labels: make([]int32, n), Split: make([]uint8, n), HeldOut: h,
	}
	for v := range c.Labels {
		c.Labels[v], c.Split[v] = graph.Unlabelled, graph.SplitTrain
	}
	if m.FeatureKind == graph.HalfFeatures {
		c.FeatureFormat = graph.Bfloat16
	}
	if m.Weighted {
		c.Edges = graph.EachWeight(without.eachWeight)
	}
	if m.EdgeDim > 0 {
		c.Edges = graph.WithFeatures(c.Edges, m.EdgeDim, without.eachFeatures)
	}
	return c
}

// source describes the held-out edges, for meta.json.
func (o *HoldOutOptions) source() string {
	if o.Val != "" {
		return fmt.Sprintf("without the held-out edges in %s and %s", filepath.Base(o.Val), filepath.Base(o.Test))
	}
	return fmt.Sprintf("without the edges held out with split %s and seed %d", o.Split, o.Seed)
}

// pairKey returns a key of a pair of vertices that does not depend on their order.
func pairKey(u, v uint32) uint64 { return uint64(min(u, v))<<32 | uint64(max(u, v)) }

// remaining contains the edges of a dataset except the pairs in taken.
type remaining struct {
	ds    *graph.Dataset
	taken []uint64 // ascending
}

// Each implements graph.EdgeSource.
func (r remaining) Each(yield func(src, dst uint32) error) error {
	return r.each(func(src, dst uint32, _ int64) error { return yield(src, dst) })
}

func (r remaining) each(yield func(src, dst uint32, at int64) error) error {
	in := r.ds.In
	for v := range in.Rows() {
		for i := in.Offsets[v]; i < in.Offsets[v+1]; i++ {
			if _, taken := slices.BinarySearch(r.taken, pairKey(in.Cols[i], uint32(v))); taken {
				continue
			}
			if err := yield(in.Cols[i], uint32(v), i); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachWeight yields edges with their weights.
func (r remaining) eachWeight(yield func(src, dst uint32, weight float32) error) error {
	return r.each(func(src, dst uint32, at int64) error { return yield(src, dst, r.ds.Weights[at]) })
}

// eachFeatures yields edges with their features and weights, or weight 1 if they have none.
func (r remaining) eachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error {
	dim := r.ds.Meta.EdgeDim
	return r.each(func(src, dst uint32, at int64) error {
		w := float32(1)
		if r.ds.Weights != nil {
			w = r.ds.Weights[at]
		}
		return yield(src, dst, w, r.ds.EdgeFeatures[int(at)*dim:][:dim])
	})
}
