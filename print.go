package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"siafu/graph"
)

// printWritten says what an import or a generation has kept and dropped.
func printWritten(w io.Writer, dir string, r *graph.WriteReport) error {
	_, err := fmt.Fprintf(w, "wrote dataset=%s vertices=%d edges=%d directed=%t duplicates_dropped=%d self_loops_dropped=%d isolated=%d unlabelled=%d train=%d val=%d test=%d\n",
		dir, r.Vertices, r.Edges, r.Directed, r.Duplicates, r.SelfLoops, r.Isolated, r.Unlabelled, r.Train, r.Val, r.Test)
	return err
}

// printInfo says what is in a dataset folder, after verifying all of it.
func printInfo(w io.Writer, dir string) error {
	d, err := graph.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	m := d.Meta
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fill := float64(m.FeatureNNZ) / (float64(m.Vertices) * float64(m.FeatureDim))
	for _, line := range [][2]any{
		{"name", m.Name}, {"source", m.Source}, {"licence", m.Licence}, {"synthetic", m.Synthetic},
		{"vertices", m.Vertices}, {"edges (directed)", m.Edges}, {"directed graph", m.Directed},
		{"mean in-degree", fmt.Sprintf("%.2f", float64(m.Edges)/float64(m.Vertices))},
		{"largest in-degree", m.MaxInDegree}, {"isolated vertices", m.Isolated},
		{"features", fmt.Sprintf("%d, %s, %.2f %% full, row-normalised: %t", m.FeatureDim, m.FeatureKind, 100*fill, m.Normalized)},
		{"classes", m.Classes}, {"train / val / test", fmt.Sprintf("%d / %d / %d", m.Train, m.Val, m.Test)},
		{"fingerprint", m.Fingerprint()},
	} {
		fmt.Fprintf(t, "%v\t%v\n", line[0], line[1])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printClasses(w, m)
	printColumns(w, m.Table)
	return printFiles(w, d)
}

func printClasses(w io.Writer, m *graph.Meta) {
	fmt.Fprint(w, "class counts:")
	for c, n := range m.ClassCounts {
		fmt.Fprintf(w, " %s=%d", m.ClassName(int64(c)), n)
	}
	fmt.Fprintln(w)
}

// printColumns says what the columns of a table have become.
func printColumns(w io.Writer, t *graph.Table) {
	if t == nil {
		return
	}
	fmt.Fprintf(w, "columns: id %s, label %s, split %s\n", t.ID, t.Label, t.Split)
	for _, c := range t.Columns {
		fmt.Fprintf(w, "column %s: %s, features %d to %d", c.Name, c.Kind, c.First, c.First+c.Width-1)
		if c.Kind == graph.NumberColumn {
			fmt.Fprintf(w, ", less %.6g, over %.6g", c.Mean, c.Scale)
		}
		fmt.Fprintln(w)
	}
	for _, d := range t.Dropped {
		fmt.Fprintf(w, "column %s is no feature: %s\n", d.Name, d.Why)
	}
}

func printFiles(w io.Writer, d *graph.Dataset) error {
	for _, name := range slices.Sorted(maps.Keys(d.Meta.Files)) {
		f := d.Meta.Files[name]
		fmt.Fprintf(w, "file %s bytes=%d crc32c=%s verified\n", name, f.Bytes, f.CRC32C)
	}
	parts, err := os.ReadDir(filepath.Join(d.Dir, "parts"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, p := range parts {
		fmt.Fprintf(w, "partitioned for %s graph ranks\n", p.Name())
	}
	return nil
}
