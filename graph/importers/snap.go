package importers

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

var snapFormat = importer{
	entry: entry{Name: "snap", Help: "folder with an edge list and NumPy arrays"},
	read:  snap, recognises: isSnap,
}

const opSnap = "import snap"

// edgeExtensions lists the extensions of edge lists not named edges.txt.
var edgeExtensions = []string{".txt", ".txt.gz", ".csv", ".csv.gz", ".el", ".el.gz"}

func isSnap(src string) bool {
	_, err := snapEdges(src)
	return err == nil && exists(filepath.Join(src, "features.npy"))
}

// snapEdges returns the path of the edge list in a folder.
func snapEdges(src string) (string, error) {
	for _, name := range []string{"edges.txt", "edges.txt.gz"} {
		if path := filepath.Join(src, name); exists(path) {
			return path, nil
		}
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return "", fault.System(opSnap, src, err)
	}
	var found []string
	for _, e := range entries {
		for _, ext := range edgeExtensions {
			if !e.IsDir() && strings.HasSuffix(e.Name(), ext) {
				found = append(found, e.Name())
			}
		}
	}
	if len(found) == 1 {
		return filepath.Join(src, found[0]), nil
	}
	return "", fault.New(fault.Missing, opSnap, src, "there is no edges.txt, and the other edge lists are %q", found).
		Then("name the edge list edges.txt or edges.txt.gz")
}

// snap reads an edge list in the format of the Stanford collection (Leskovec and Krevl 2014),
// and NumPy arrays in the same folder. Row i of an array belongs to the i-th smallest id.
func snap(k *resources, o Options) *graph.Content {
	a := arrayAt(opSnap, filepath.Join(o.Src, "features.npy"), k)
	n := a.rows()
	c := &graph.Content{Source: "snap " + nameOf(o.Src), Vertices: n, Features: a.dense(k, n)}
	snapGraph(k, o, c)
	path := filepath.Join(o.Src, "labels.npy")
	if !exists(path) && o.Split == "" && !exists(filepath.Join(o.Src, "split.npy")) {
		c.Labels, c.Split = unlabelled(n), make([]uint8, n)
		return c
	}
	arrayAt(opSnap, path, k).setLabels(o, c)
	c.Split = snapSplit(k, o, c)
	return c
}

// snapGraph reads the edges and fits their ids to the rows of features.
func snapGraph(k *resources, o Options, c *graph.Content) {
	l := readEdgeList(k, input{opSnap, must(snapEdges(o.Src))})
	r := must(l.rank())
	to := r.of
	if r.n == c.Vertices {
		c.IDs = keepIDs(r.ids())
	} else {
		// Vertices without an edge are not in the list; the ids must then be row numbers.
		l.require(r.n < c.Vertices && (r.n == 0 || l.least >= 0 && l.top < c.Vertices),
			"give one row for each id in ascending order, or number the vertices by row",
			"%d ids from %d to %d for %d rows of features", r.n, l.least, l.top, c.Vertices)
		o.Log("ids=rows %d of %d vertices have no edge", c.Vertices-r.n, c.Vertices)
		to = func(id int64) uint32 { return uint32(id) }
	}
	c.Edges = must(l.renumber(k, to))
}

// snapSplit reads split.npy, or the file that --split names, or makes a random split.
func snapSplit(k *resources, o Options, c *graph.Content) []uint8 {
	name := cmp.Or(o.Split, "split.npy")
	if name != filepath.Base(name) {
		input{opSnap, o.Src}.refuse("name a file next to features.npy", "split %q is not a file of the folder", name)
	}
	path := filepath.Join(o.Src, name)
	if o.Split == "" && !exists(path) {
		return o.draw(c.Labels, usual)
	}
	return arrayAt(opSnap, path, k).sets(c.Vertices)
}
