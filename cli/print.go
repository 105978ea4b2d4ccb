package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/table"
)

// printWritten prints what an import or a generation stored and dropped.
func printWritten(w io.Writer, dir string, r *graph.WriteReport) error {
	weighted, duplicates := "", "dropped"
	if r.Weighted {
		weighted, duplicates = " weighted=true", "added_up"
	}
	if r.EdgeDim > 0 {
		weighted += fmt.Sprintf(" edge_features=%d", r.EdgeDim)
		if !r.Weighted {
			duplicates = "averaged"
		}
	}
	_, err := fmt.Fprintf(w, "wrote dataset=%s vertices=%d edges=%d directed=%t%s duplicates_%s=%d self_loops_dropped=%d isolated=%d "+
		"unlabelled=%d train=%d val=%d test=%d\n",
		dir, r.Vertices, r.Edges, r.Directed, weighted, duplicates, r.Duplicates, r.SelfLoops, r.Isolated,
		r.Unlabelled, r.Train, r.Val, r.Test)
	if l := r.Links; l != nil && err == nil {
		_, err = fmt.Fprintf(w, "links train=%d val=%d test=%d val_without=%d test_without=%d ranked=%d\n", l.Train, l.Val, l.Test,
			l.NotVal, l.NotTest, l.Ranked)
	}
	return err
}

// printInfo verifies a dataset folder and prints its properties.
func printInfo(w io.Writer, dir string) error {
	d, err := graph.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	m := d.Meta
	fill := float64(m.FeatureNNZ) / (float64(m.Vertices) * float64(m.FeatureDim))
	for _, line := range [][2]any{
		{"name", m.Name}, {"source", m.Source}, {"licence", m.Licence}, {"synthetic", m.Synthetic},
		{"vertices", m.Vertices}, {"edges (directed)", m.Edges}, {"directed graph", m.Directed}, {"weights of edges", weightsOf(d)},
		{"features of an edge", m.EdgeDim},
		{"mean in-degree", fmt.Sprintf("%.2f", float64(m.Edges)/float64(m.Vertices))},
		{"largest in-degree", m.MaxInDegree}, {"isolated vertices", m.Isolated},
		{"features", fmt.Sprintf("%d, %s, %.2f %% full, row-normalised: %t", m.FeatureDim, m.FeatureKind, 100*fill, m.Normalized)},
		{"task", m.Task}, {"classes", m.Classes}, {"train / val / test", fmt.Sprintf("%d / %d / %d", m.Train, m.Val, m.Test)},
		{"fingerprint", m.Fingerprint()},
	} {
		if _, err := fmt.Fprintf(w, "%-19s  %v\n", line[0], line[1]); err != nil {
			return err
		}
	}
	printClasses(w, m)
	printColumns(w, m.Table, 0)
	if err := printRelations(w, d); err != nil {
		return err
	}
	return printFiles(w, d)
}

// weightsOf describes the edge weights.
func weightsOf(d *graph.Dataset) string {
	if !d.Meta.Weighted || len(d.Weights) == 0 {
		return "none"
	}
	return fmt.Sprintf("%g to %g", slices.Min(d.Weights), slices.Max(d.Weights))
}

// printInfoJSON prints the properties of a dataset folder as JSON.
func printInfoJSON(w io.Writer, dir string) error {
	d, err := graph.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	parts, err := partitionings(dir)
	if err != nil {
		return err
	}
	return table.JSON(w, struct {
		*graph.Meta
		Fingerprint   string   `json:"fingerprint"`
		Partitionings []string `json:"partitionings"`
	}{d.Meta, d.Meta.Fingerprint(), parts})
}

func printClasses(w io.Writer, m *graph.Meta) {
	fmt.Fprint(w, "class counts:")
	for c, n := range m.ClassCounts {
		fmt.Fprintf(w, " %s=%d", m.ClassName(int64(c)), n)
	}
	fmt.Fprintln(w)
	for c, s := range m.TargetScaling {
		fmt.Fprintf(w, "targets %s: trained on less %.6g, over %.6g\n", m.ClassName(int64(c)), s.Mean, s.Scale)
	}
}

// printRelations prints the kinds of vertices and the relations of a relational graph.
func printRelations(w io.Writer, d *graph.Dataset) error {
	r := d.Meta.Relations
	if r == nil {
		return nil
	}
	for k, x := range r.Kinds {
		isolated, first := 0, r.First(k)
		for v := first; v < first+x.Vertices; v++ {
			if len(d.In.Row(int(v)))+len(d.Out.Row(int(v))) == 0 {
				isolated++
			}
		}
		fmt.Fprintf(w, "kind %s: %d vertices, features %d to %d, %d labels, %d isolated\n", x.Name, x.Vertices, x.FirstFeature,
			x.FirstFeature+x.Features-1, x.Labels, isolated)
		printColumns(w, x.Table, x.FirstFeature)
	}
	most := make([]int, len(r.Relations))
	for v := range d.In.Rows() {
		for lo, hi := d.In.Offsets[v], d.In.Offsets[v+1]; lo < hi; {
			relation, first := d.Relations[lo], lo
			for lo < hi && d.Relations[lo] == relation {
				lo++
			}
			most[relation] = max(most[relation], int(lo-first))
		}
	}
	for i, x := range r.Relations {
		reverse := ""
		if x.Reverse {
			reverse = ", reverse of " + r.Label(x.Inverse)
		}
		if _, err := fmt.Fprintf(w, "relation %s: %d edges, in-degree %.2f on average, %d at most%s\n", r.Label(i), x.Edges,
			float64(x.Edges)/float64(max(r.Kinds[x.To].Vertices, 1)), most[i], reverse); err != nil {
			return err
		}
	}
	return nil
}

// printColumns prints the features into which a table's columns were converted. They follow the given number
// of features of other kinds.
func printColumns(w io.Writer, t *graph.Table, before int) {
	if t == nil {
		return
	}
	if t.Label != "" {
		fmt.Fprintf(w, "columns: id %s, label %s, split %s\n", t.ID, t.Label, t.Split)
	}
	for _, c := range t.Columns {
		fmt.Fprintf(w, "column %s: %s, features %d to %d", c.Name, c.Kind, before+c.First, before+c.First+c.Width-1)
		if c.Kind == graph.NumberColumn || c.Kind == graph.DateColumn {
			fmt.Fprintf(w, ", less %.6g, over %.6g", c.Mean, c.Scale)
		}
		fmt.Fprintln(w)
	}
	for _, d := range t.Dropped {
		fmt.Fprintf(w, "column %s is not a feature: %s\n", d.Name, d.Why)
	}
}

func printFiles(w io.Writer, d *graph.Dataset) error {
	for _, name := range slices.Sorted(maps.Keys(d.Meta.Files)) {
		f := d.Meta.Files[name]
		fmt.Fprintf(w, "file %s bytes=%d crc32c=%s verified\n", name, f.Bytes, f.CRC32C)
	}
	parts, err := partitionings(d.Dir)
	for _, name := range parts {
		fmt.Fprintf(w, "partitioned for %s graph ranks\n", name)
	}
	return err
}

// partitionings returns the names of a dataset's shard folders.
func partitionings(dir string) (names []string, err error) {
	parts, err := os.ReadDir(filepath.Join(dir, "parts"))
	if err != nil && !os.IsNotExist(err) {
		return nil, fault.System("info", dir, err)
	}
	for _, p := range parts {
		names = append(names, p.Name())
	}
	return names, nil
}
