package importers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"siafu/graph"
	"siafu/graph/fault"
)

const opSAINT = "import graphsaint"

// graphsaint reads the folder of Zeng et al. (2020): adj_full.npz (a SciPy
// matrix), feats.npy, class_map.json and role.json.
func graphsaint(k *keeper, o Options) (*graph.Content, error) {
	path := filepath.Join(o.Src, "adj_full.npz")
	z, err := k.zip(path)
	if err != nil {
		return nil, err
	}
	adj, err := zipMatrix(opSAINT, path, z, "")
	if err != nil {
		return nil, err
	}
	n := adj.rows
	c := &graph.Content{Source: "graphsaint " + nameOf(o.Src), Vertices: n}
	if c.Edges, err = adj.edges(o); err != nil {
		return nil, err
	}
	if c.Features, err = arrayAt(opSAINT, filepath.Join(o.Src, "feats.npy"), k).dense(k, n); err != nil {
		return nil, err
	}
	if c.Labels, err = classMap(filepath.Join(o.Src, "class_map.json"), int(n)); err != nil {
		return nil, err
	}
	c.Split, err = roles(filepath.Join(o.Src, "role.json"), int(n))
	return c, err
}

// classMap reads {"vertex": label, …}.
func classMap(path string, n int) ([]int32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System(opSAINT, path, err)
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(f, blockSize))
	dec.UseNumber()
	bad := func(err error) error {
		return &fault.Error{Op: opSAINT, Kind: fault.Data, Path: path, Detail: fmt.Sprintf("byte %d", dec.InputOffset()), Err: err}
	}
	labels, seen := slices.Repeat([]int64{int64(graph.Unlabelled)}, n), make([]bool, n)
	if t, err := dec.Token(); err != nil {
		return nil, bad(err)
	} else if t != json.Delim('{') {
		return nil, fault.New(fault.Data, opSAINT, path, "is no JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, bad(err)
		}
		value, err := dec.Token()
		if err != nil {
			return nil, bad(err)
		}
		v, l, err := classEntry(path, key, value, n)
		if err != nil {
			return nil, err
		}
		if seen[v] {
			return nil, fault.New(fault.Data, opSAINT, path, "vertex %d comes twice", v)
		}
		labels[v], seen[v] = l, true
	}
	if _, err := dec.Token(); err != nil {
		return nil, bad(err)
	}
	return checkLabels(opSAINT, path, labels)
}

// classEntry reads one vertex and its label. A list holds a flag for each of
// several classes.
func classEntry(path string, key, value json.Token, n int) (v int, label int64, err error) {
	v, err = strconv.Atoi(fmt.Sprint(key))
	if err != nil || v < 0 || v >= n {
		return 0, 0, fault.New(fault.Data, opSAINT, path, "key %.40q is outside the vertices 0..%d", key, n-1)
	}
	switch x := value.(type) {
	case json.Number:
		if label, err = x.Int64(); err == nil {
			return v, label, nil
		}
	case json.Delim:
		if x == '[' {
			return 0, 0, multiLabel(opSAINT, path, "vertex %d has a list of labels", v)
		}
	}
	return 0, 0, fault.New(fault.Data, opSAINT, path, "label of vertex %d is %.40v, expected a whole number", v, value)
}

// roles reads {"tr": [vertices], "va": […], "te": […]}.
func roles(path string, n int) ([]uint8, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(opSAINT, path, err)
	}
	var r struct{ Tr, Va, Te []int64 }
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, &fault.Error{Op: opSAINT, Kind: fault.Data, Path: path, Err: err}
	}
	s := newSplitter(opSAINT, n)
	for i, list := range [][]int64{r.Tr, r.Va, r.Te} {
		if err := s.markAll(path, list, uint8(graph.SplitTrain+i)); err != nil {
			return nil, err
		}
	}
	return s.split, nil
}
