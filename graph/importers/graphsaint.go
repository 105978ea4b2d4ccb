package importers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"siafu/graph"
	"siafu/internal/fault"
)

var graphsaintFormat = importer{
	entry: entry{Name: "graphsaint", Help: "folder with `adj_full.npz`"},
	read:  graphsaint, recognises: holds("adj_full.npz"), weights: true, onlySplit: "role.json has the only split",
}

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
	if err = classMap(o, filepath.Join(o.Src, "class_map.json"), c); err != nil {
		return nil, err
	}
	c.Split, err = roles(filepath.Join(o.Src, "role.json"), int(n))
	return c, err
}

// classMap reads {"vertex": label, …}, or {"vertex": [0, 1, …], …} with a flag for each
// of several labels.
func classMap(o Options, path string, c *graph.Content) error {
	n := int(c.Vertices)
	f, err := os.Open(path)
	if err != nil {
		return fault.System(opSAINT, path, err)
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(f, blockSize))
	dec.UseNumber()
	bad := func(err error) error {
		return &fault.Error{Op: opSAINT, Kind: fault.Data, Path: path, Detail: fmt.Sprintf("byte %d", dec.InputOffset()), Err: err}
	}
	var flags []float32 // [n x width], once there is a list
	width := 0
	labels, seen := slices.Repeat([]int64{int64(graph.Unlabelled)}, n), make([]bool, n)
	if t, err := dec.Token(); err != nil {
		return bad(err)
	} else if t != json.Delim('{') {
		return fault.New(fault.Data, opSAINT, path, "is not a JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return bad(err)
		}
		value, err := dec.Token()
		if err != nil {
			return bad(err)
		}
		v, l, err := classEntry(path, key, value, n)
		if err != nil {
			return err
		}
		if value == json.Delim('[') != (width > 0) && slices.Contains(seen, true) {
			return fault.New(fault.Data, opSAINT, path, "vertex %d mixes single labels with lists of labels: use one form for all vertices", v)
		}
		if value == json.Delim('[') {
			row, err := flagsOf(dec)
			if err != nil {
				return bad(err)
			}
			if flags == nil && len(row) > 0 && len(row) <= graph.MaxClasses(int64(n)) {
				width = len(row)
				flags = slices.Repeat([]float32{float32(math.NaN())}, n*width)
			}
			if len(row) != width || width == 0 {
				return fault.New(fault.Data, opSAINT, path, "vertex %d has a list of %d labels, other vertices have %d", v, len(row), width)
			}
			copy(flags[v*width:], row)
		}
		if seen[v] {
			return fault.New(fault.Data, opSAINT, path, "vertex %d occurs twice", v)
		}
		labels[v], seen[v] = l, true
	}
	if _, err := dec.Token(); err != nil {
		return bad(err)
	}
	if flags != nil {
		return setTargets(o, c, flags, width, opSAINT, path)
	}
	c.Labels, err = checkLabels(opSAINT, path, labels)
	return err
}

// flagsOf reads a list of numbers to its end.
func flagsOf(dec *json.Decoder) (row []float32, err error) {
	for dec.More() {
		var x float32
		if err := dec.Decode(&x); err != nil {
			return nil, err
		}
		row = append(row, x)
	}
	_, err = dec.Token()
	return row, err
}

// classEntry reads one vertex and its label. A list has a flag for each of several classes.
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
			return v, 0, nil
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
