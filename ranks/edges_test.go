package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/graphwork"
)

// Coded edges give the weights of plain edges to the bit, on one rank and on two, and the size of the code
// is estimated within 5 %.
func TestCodedEdgesGiveTheSameBits(t *testing.T) {
	t.Parallel()
	plain := map[bool]string{}
	for _, directed := range []bool{false, true} {
		plain[directed] = planted(t, generate.Options{Vertices: 2000, Edges: 30000, Directed: directed})
	}
	for name, tc := range map[string]struct {
		data  string
		ranks int
		set   func(c *Config)
	}{
		"gcn, one rank":      {plain[false], 1, func(c *Config) { c.VertexOrder = "natural" }},
		"gcn":                {plain[false], 2, func(c *Config) { c.Layers, c.InputDropout = 3, 0.5 }},
		"sage, directed":     {plain[true], 2, func(c *Config) { c.Model = "sage" }},
		"gin, directed, one": {plain[true], 1, func(c *Config) { c.Model, c.Gather = "gin", "bf16" }},
		"gcn, weights":       {weightedGraph(t, true), 2, func(c *Config) {}},
		"gcn, without rows":  {plain[false], 2, func(c *Config) { c.Refresh = "auto" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Ranks, c.Epochs, c.Hidden, c.PreAggregate = tc.ranks, 2, 20, "off"
			tc.set(&c)
			want := train(t, c, tc.data)
			c.Edges, c.Out = config.CodedEdges, c.Out+"-coded"
			got := train(t, c, tc.data)
			if !bytes.Equal(got.model, want.model) {
				t.Error("the weights differ")
			}
			f, parts := foreseen(t, c, tc.data, tc.ranks, 0)
			for rank, ran := range got.Summary.PerRank {
				s, err := shard.Open(tc.data, tc.ranks, rank)
				if err != nil {
					t.Fatal(err)
				}
				parts[rank].CodedBits = graphwork.EstimateCodedBits(s)
				s.Close()
				m := f.GraphRank(rank, parts[rank])
				code := int64(0)
				for _, term := range m {
					if term.Name == graphwork.CodedEdges {
						code = term.Bytes
					}
				}
				if d := ran.ArrayBytes - m.Of(forecast.Array); code == 0 || d < -1024-code/20 || d > 1024+code/20 {
					t.Errorf("rank %d made arrays of %d bytes, estimated were %d with %d of coded edges", rank,
						ran.ArrayBytes, m.Of(forecast.Array), code)
				}
				if all := want.Summary.PerRank[rank].ArrayBytes; ran.ArrayBytes <= all && tc.data == plain[false] {
					t.Errorf("rank %d has coded no edges: %d bytes, %d with plain ones", rank, ran.ArrayBytes, all)
				}
			}
		})
	}
}

// Columns are coded automatically if only then the rank fits in --memory.
func TestEdgesAreCodedToFit(t *testing.T) {
	data := planted(t, generate.Options{Vertices: 2000, Edges: 400000})
	c := quick(t)
	c.Ranks, c.Epochs, c.Quiet, c.LogFormat = 1, 1, false, "fields"
	train(t, c, data) // makes the shard
	c.Memory = "1GB"  // a limit changes how values are stored
	f, parts := foreseen(t, c, data, 1, 0)
	peak := f.GraphRank(0, parts[0]).Peak() + forecast.Program
	for less, want := range map[int64]bool{-10e3: false, 500e3: true, 30e6: false} {
		var out bytes.Buffer
		c.Memory, c.ForceMemory = fmt.Sprint(peak-less), true
		if err := Train(context.Background(), c, data, IO{Out: &out, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		if coded := strings.Contains(out.String(), "edges coded bits="); coded != want {
			t.Errorf("%d bytes less than plain edges need: coded %t", less, coded)
		}
	}
	c.Edges, c.Model = config.CodedEdges, "gat"
	err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--memory edges=coded with --model=gat") {
		t.Errorf("%v", err)
	}
}
