package importers

import (
	"errors"
	"slices"

	"siafu/graph"
)

// isLarge reports whether a loss of n out of all is large enough for a warning.
func isLarge(n, all int64) bool { return n > 0 && 10*n >= all }

func warnOfLabels(c *graph.Content, o Options) {
	first := slices.IndexFunc(c.Labels, func(l int32) bool { return l != graph.Unlabelled })
	switch {
	case c.Task == graph.Links:
	case first < 0 && c.Classes == 0:
		o.Log("warning: no vertex has a label: use the dataset with siafu predict or siafu holdout")
	case first < 0 || c.Targets != nil:
	case !slices.ContainsFunc(c.Labels, func(l int32) bool { return l != graph.Unlabelled && l != c.Labels[first] }):
		o.Log("warning: all labelled vertices have the same class, so there is nothing to learn; a label of -1 means no " +
			"label: number the classes from 0")
	}
}

// warnOfEdges warns of a graph without edges, and of ids that probably start at 1.
func (f *importer) warnOfEdges(c *graph.Content, o Options, r *graph.WriteReport) {
	switch {
	case r.Edges == 0:
		o.Log("warning: the graph has no edges (self loops are dropped: %d), so that vertices learn nothing from each other; check the "+
			"edges of the source", r.SelfLoops)
	case f.numbersByRow(c) && !namesFirst(c.Edges):
		o.Log("warning: no edge has vertex 0: the ids of edges are row numbers, numbered from 0; if the ids in the source " +
			"start at 1, subtract 1 from each")
	}
}

// numbersByRow reports whether the ids in edges are numbers of rows of the other arrays.
func (f *importer) numbersByRow(c *graph.Content) bool {
	return !f.isTable() && c.Relations == nil && f != &debianFormat && (f != &snapFormat || c.IDs == nil)
}

// namesFirst reports whether vertex 0 is an end of an edge.
func namesFirst(edges graph.EdgeSource) bool {
	found := errors.New("found")
	return edges.Each(func(src, dst uint32) error {
		if src == 0 || dst == 0 {
			return found
		}
		return nil
	}) != nil
}
