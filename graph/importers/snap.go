package importers

import (
	"cmp"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/internal/fault"
)

var snapFormat = importer{
	entry: entry{Name: "snap", Help: "folder with an edge list and NumPy arrays"},
	read:  snap, recognises: isSnap, weights: true,
}

// edgeExtensions lists the extensions of edge lists not named edges.txt.
var edgeExtensions = []string{".txt", ".txt.gz", ".csv", ".csv.gz", ".el", ".el.gz"}

func isSnap(src string) bool {
	folder := input{path: src}
	_, err := snapEdges(folder)
	return err == nil && folder.in("features.npy").exists()
}

func snapEdges(folder input) (list input, err error) {
	for _, name := range []string{"edges.txt", "edges.txt.gz"} {
		if at := folder.in(name); at.exists() {
			return at, nil
		}
	}
	entries, err := os.ReadDir(folder.path)
	if err != nil {
		return list, fault.System(folder.op, folder.path, err)
	}
	var found []string
	for _, e := range entries {
		if isFile(edgeExtensions...)(folder.in(e.Name()).path) {
			found = append(found, e.Name())
		}
	}
	if len(found) == 1 {
		return folder.in(found[0]), nil
	}
	return list, fault.New(fault.Missing, folder.op, folder.path, "there is no edges.txt, and the other edge lists are %q", found).
		Then("name the edge list edges.txt or edges.txt.gz")
}

// snap reads an edge list in the format of the Stanford collection (Leskovec and Krevl 2014),
// and NumPy arrays in the same folder. Row i of an array belongs to the i-th smallest id.
func snap(k *resources, o Options) *graph.Content {
	a := k.array(k.in("features.npy"))
	n := a.rows()
	c := &graph.Content{Vertices: n, Features: a.dense(k, n)}
	snapGraph(k, o, c)
	labels := k.in("labels.npy")
	if !labels.exists() && o.Split == "" && !k.in("split.npy").exists() {
		c.Labels, c.Split = unlabelled(n), make([]uint8, n)
		return c
	}
	k.array(labels).setLabels(o, c)
	c.Split = snapSplit(k, o, c)
	return c
}

// snapGraph reads the edges and fits their ids to the rows of features.
func snapGraph(k *resources, o Options, c *graph.Content) {
	l := readEdgeList(k, must(snapEdges(k.input)), o.DropWeights)
	r := l.rank()
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
	c.Edges = l.renumber(k, to)
}

// snapSplit reads split.npy, or the file that --split names, or makes a random split.
func snapSplit(k *resources, o Options, c *graph.Content) []uint8 {
	name := cmp.Or(o.Split, "split.npy")
	if name != filepath.Base(name) {
		k.refuse("name a file next to features.npy", "split %q is not a file of the folder", name)
	}
	sets := k.in(name)
	if o.Split == "" && !sets.exists() {
		return o.draw(c.Labels, usual)
	}
	return k.array(sets).sets(c.Vertices)
}
