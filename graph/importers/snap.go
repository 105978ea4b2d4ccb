package importers

import (
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
// and NumPy arrays in the same folder whose row i belongs to the i-th smallest id.
func snap(k *keeper, o Options) (*graph.Content, error) {
	a := arrayAt(opSnap, filepath.Join(o.Src, "features.npy"), k)
	if a.err != nil {
		return nil, a.err
	}
	if len(a.Shape) != 2 {
		return nil, a.bad("features have shape %v, expected [vertices columns]", a.Shape)
	}
	n := int64(a.Shape[0])
	c := &graph.Content{Source: "snap " + nameOf(o.Src), Vertices: n}
	if err := checkVertices(opSnap, a.path, n); err != nil {
		return nil, err
	}
	var err error
	if c.Features, err = a.dense(k, n); err != nil {
		return nil, err
	}
	if err := snapGraph(k, o, c); err != nil {
		return nil, err
	}
	path := filepath.Join(o.Src, "labels.npy")
	if !exists(path) && o.Split == "" && !exists(filepath.Join(o.Src, "split.npy")) {
		c.Labels, c.Split = unlabelled(n), make([]uint8, n)
		return c, nil
	}
	if err = arrayAt(opSnap, path, k).setLabels(o, c); err != nil {
		return nil, err
	}
	return c, snapSplit(k, o, c)
}

// snapGraph reads the edges and fits their ids to the rows of features.
func snapGraph(k *keeper, o Options, c *graph.Content) error {
	path, err := snapEdges(o.Src)
	if err != nil {
		return err
	}
	l, err := readEdgeList(k, opSnap, path)
	if err != nil {
		return err
	}
	r, err := l.rank()
	if err != nil {
		return err
	}
	to := r.of
	switch {
	case r.n == c.Vertices:
		c.IDs = keepIDs(r.ids())
	case r.n < c.Vertices && (r.n == 0 || l.least >= 0 && l.top < c.Vertices):
		// Vertices without an edge are not in the list; the ids must then be row numbers.
		o.Log("ids=rows %d of %d vertices have no edge", c.Vertices-r.n, c.Vertices)
		to = func(id int64) uint32 { return uint32(id) }
	default:
		return fault.New(fault.Data, opSnap, path, "%d ids from %d to %d for %d rows of features", r.n, l.least, l.top, c.Vertices).
			Then("give one row for each id in ascending order, or number the vertices by row")
	}
	c.Edges, err = l.renumber(k, to)
	return err
}

// snapSplit reads split.npy, or the file that --split names, or makes a random split.
func snapSplit(k *keeper, o Options, c *graph.Content) (err error) {
	name := o.Split
	if name == "" {
		name = "split.npy"
	}
	if name != filepath.Base(name) {
		return fault.New(fault.Usage, opSnap, o.Src, "split %q is not a file of the folder", name).Then("name a file next to features.npy")
	}
	path := filepath.Join(o.Src, name)
	if o.Split == "" && !exists(path) {
		c.Split, err = o.draw(c.Labels, usual)
		return err
	}
	c.Split, err = arrayAt(opSnap, path, k).sets(c.Vertices)
	return err
}
