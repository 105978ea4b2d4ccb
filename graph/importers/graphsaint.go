package importers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"siafu/graph"
)

var graphsaintFormat = importer{
	entry: entry{Name: "graphsaint", Help: "folder with `adj_full.npz`"},
	read:  graphsaint, recognises: holds("adj_full.npz"), weights: true, onlySplit: "role.json has the only split",
}

// graphsaint reads the folder of Zeng et al. (2020): adj_full.npz (a SciPy
// matrix), feats.npy, class_map.json and role.json.
func graphsaint(k *resources, o Options) *graph.Content {
	adj := k.zip(k.in("adj_full.npz")).matrix("")
	c := &graph.Content{
		Vertices: adj.rows, Edges: adj.edges(o),
		Features: k.array(k.in("feats.npy")).dense(k, adj.rows),
	}
	classMap(o, k.in("class_map.json"), c)
	// {"tr": [vertices], "va": […], "te": […]}
	var roles struct{ Tr, Va, Te []int64 }
	at, s := k.in("role.json"), make(splitter, adj.rows)
	at.json(&roles)
	for i, list := range [][]int64{roles.Tr, roles.Va, roles.Te} {
		s.markAll(at, list, uint8(graph.SplitTrain+i))
	}
	c.Split = s
	return c
}

// classMap reads {"vertex": label, …}, or {"vertex": [0, 1, …], …} with a flag for each
// of several labels.
func classMap(o Options, at input, c *graph.Content) {
	n := int(c.Vertices)
	f, err := os.Open(at.path)
	at.system(err)
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(f, blockSize))
	dec.UseNumber()
	wrap := func(err error) {
		if err != nil {
			at.wrap(fmt.Errorf("byte %d: %w", dec.InputOffset(), err))
		}
	}
	token := func() json.Token {
		t, err := dec.Token()
		wrap(err)
		return t
	}
	var flags []float32 // [n x width], once there is a list
	width := 0
	labels, seen := slices.Repeat([]int64{int64(graph.Unlabelled)}, n), make([]bool, n)
	at.require(token() == json.Delim('{'), "", "is not a JSON object")
	for first := true; dec.More(); first = false {
		key, value := token(), token()
		list := value == json.Delim('[')
		v, l := classEntry(at, key, value, n)
		at.require(first || list == (width > 0), "", "vertex %d mixes single labels with lists of labels: use one form for all vertices", v)
		if list {
			row, err := flagsOf(dec)
			wrap(err)
			if flags == nil && len(row) > 0 && len(row) <= graph.MaxClasses(int64(n)) {
				width = len(row)
				flags = slices.Repeat([]float32{float32(math.NaN())}, n*width)
			}
			at.require(len(row) == width && width > 0, "", "vertex %d has a list of %d labels, other vertices have %d", v, len(row), width)
			copy(flags[v*width:], row)
		}
		at.require(!seen[v], "", "vertex %d occurs twice", v)
		labels[v], seen[v] = l, true
	}
	token()
	if flags != nil {
		setTargets(o, c, flags, width, at)
		return
	}
	c.Labels = checkLabels(at, labels)
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

// classEntry reads one vertex and its label: 0 for a list, which has a flag for each of several
// classes.
func classEntry(at input, key, value json.Token, n int) (v int, label int64) {
	v, err := strconv.Atoi(fmt.Sprint(key))
	at.require(err == nil && v >= 0 && v < n, "", "key %.40q is outside the vertices 0..%d", key, n-1)
	if number, ok := value.(json.Number); ok {
		label, err = number.Int64()
	} else if value != json.Delim('[') {
		err = strconv.ErrSyntax
	}
	at.require(err == nil, "", "label of vertex %d is %.40v, expected a whole number", v, value)
	return v, label
}
