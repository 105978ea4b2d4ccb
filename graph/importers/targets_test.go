package importers

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

var nan = float32(math.NaN())

// Every format that can store several label columns and numbers imports them, with a task by
// their values or by --task.
func TestTargets(t *testing.T) {
	flags, numbers := []float32{0, 1, 1, 1, nan, nan, 0, 0}, []float32{0.5, -1, 2, 3}
	pyg := func(y []byte) map[string][]byte {
		return map[string][]byte{"a.npz": bundle("x", f4s(4, 2, tinyFeatures...), "edge_index",
			array("<i8", "(2, 4)", little([]int64{0, 1, 2, 3, 1, 2, 0, 0})), "y", y)}
	}
	table := func(nodes string) map[string][]byte {
		return map[string][]byte{"nodes.csv": []byte(nodes), "edges.csv": []byte("src,dst\n0,1\n")}
	}
	for _, c := range []struct {
		name, from, src string
		files           map[string][]byte
		task, label     string // of Options
		want            string
		targets         []float32
		names           []string
	}{
		{"npz flags", "npz", "a.npz", pyg(f4s(4, 2, flags...)), "", "", graph.MultiLabel, flags, nil},
		{"npz flags as numbers", "npz", "a.npz", pyg(f4s(4, 2, flags...)), graph.Regression, "", graph.Regression, flags, nil},
		{"npz numbers", "npz", "a.npz", pyg(f4s(4, 1, numbers...)), "", "", graph.Regression, numbers, nil},
		{"npz whole numbers", "npz", "a.npz", pyg(i8s(3, 1, 0, 2)), graph.Regression, "", graph.Regression, []float32{3, 1, 0, 2}, nil},
		{"npz two columns of numbers", "npz", "a.npz", pyg(f4s(4, 2, 0, 1.5, 1, 1, nan, nan, 0, 0)), "", "", graph.Regression,
			[]float32{0, 1.5, 1, 1, nan, nan, 0, 0}, nil},
		{"csv flags", "csv", "", table("id,a,f,b\n0,0,2,1\n1,1,3,1\n2,,4,\n3,0,5,0\n"), "", "a,b",
			graph.MultiLabel, flags, []string{"a", "b"}},
		{"csv numbers", "csv", "", table("id,f,label\n0,2,0.5\n1,3,-1\n2,4,2\n3,5,3\n"), graph.Regression, "",
			graph.Regression, numbers, []string{"label"}},
		{"csv numbers in two columns", "csv", "", table("id,a,f,b\n0,0,2,1.5\n1,1,3,1\n2,NA,4,nan\n3,0,5,0\n"), "", "a,b", graph.Regression,
			[]float32{0, 1.5, 1, 1, nan, nan, 0, 0}, []string{"a", "b"}},
		{"graphsaint", "graphsaint", "", with(with(tinySAINT(), "class_map.json", `{"3": [0, 0], "0": [0, 1], "1": [1, 1]}`), "role.json",
			`{"tr": [0, 1], "va": [], "te": [3]}`), "", "", graph.MultiLabel, flags, nil},
		{"ogb", "ogb", "", with(tinyOGB(), "raw/node-label.csv.gz", gz("0,1\n1,1\n0,0\n1,0\n")), "", "", graph.MultiLabel,
			[]float32{0, 1, 1, 1, 0, 0, 1, 0}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := t.TempDir() + "/out"
			o := Options{Src: files(t, c.files) + "/" + c.src, Dst: dst, Task: c.task}
			o.Label = c.label
			if _, err := Import(c.from, o); err != nil {
				t.Fatal(err)
			}
			ds, err := graph.Open(dst)
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			if same := slices.EqualFunc(ds.Targets, c.targets, func(a, b float32) bool { return a == b || a != a && b != b }); !same ||
				ds.Meta.Task != c.want {
				t.Errorf("%s %v, want %s %v", ds.Meta.Task, ds.Targets, c.want, c.targets)
			}
			if !slices.Equal(ds.Meta.ClassNames, c.names) || ds.Meta.Classes != len(c.targets)/4 {
				t.Errorf("%d columns %q, want %q", ds.Meta.Classes, ds.Meta.ClassNames, c.names)
			}
			for v, l := range ds.Labels {
				if (l == graph.Unlabelled) != (c.targets[v*ds.Meta.Classes] != c.targets[v*ds.Meta.Classes]) {
					t.Errorf("vertex %d has label %d", v, l)
				}
			}
		})
	}
}

// Bad targets are refused with place, value and remedy.
func TestBadTargets(t *testing.T) {
	for _, c := range []struct {
		nodes, task, label string
		kind               fault.Kind
		want               string
	}{
		{"id,a,f,b\n0,0,2,1\n1,1,3,\n", "", "a,b", fault.Data,
			"line 3 column 2 (a): \"1\" is in a row that has labels in 1 of 2 columns; " +
				"write a number in every one of these columns, or in none"},
		{"id,a,f,b\n0,0,2,1\n1,x,3,1\n", "", "a,b", fault.Data, "line 3 column 2 (a): \"x\" is not a number"},
		{"id,a,f,b\n0,0,2,1\n1,2,3,1\n", graph.MultiLabel, "a,b", fault.Data, "column 0 of row 1 is 2: a label must be 0 or 1"},
		{"id,a,f,b\n0,0,2,1\n", "", "a,c", fault.Data, "--label"},
		{"id,a,f,b\n0,0,2,1\n", graph.MultiClass, "a,b", fault.Usage, "--task=multiclass with the 2 columns a,b"},
		{"id,a,f,b\n0,,2,\n", "", "a,b", fault.Data, "no vertex has a label"},
		{"id,a,f\n0,1.5,2\n1,2.5,2\n", "", "a", fault.Data, "--task regression"},
	} {
		_, err := importTable(t, c.nodes, "src,dst\n0,0\n", Options{Task: c.task, TableOptions: TableOptions{Label: c.label}})
		if err == nil || fault.KindOf(err) != c.kind && c.kind != fault.Data || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestStandardisedTargets: --standardise scales targets by their training rows, in tables and arrays.
// The targets are stored in the user's units. --like takes the scaling over.
func TestStandardisedTargets(t *testing.T) {
	want := []graph.Scaling{{Mean: 200, Scale: 100}, {Mean: 7, Scale: 1}}
	edges := "src,dst\n0,1\n1,2\n"
	table := Options{Src: files(t, map[string][]byte{
		"nodes.csv": []byte("id,f,a,b,split\n0,1,100,7,train\n1,2,300,7,train\n2,4,9000,8,test\n3,5,,,\n"), "edges.csv": []byte(edges)})}
	table.Label, table.Standardise = "a,b", true
	arrays := Options{Src: files(t, map[string][]byte{"a.npz": bundle("x", f4s(4, 2, tinyFeatures...),
		"edge_index", array("<i8", "(2, 2)", little([]int64{0, 1, 1, 2})), "y", f4s(4, 2, 100, 7, 300, 7, 9000, 8.5, nan, nan),
		"train_mask", array("|b1", "(4,)", []byte{1, 1, 0, 0}), "val_mask", array("|b1", "(4,)", []byte{0, 0, 0, 0}), "test_mask",
		array("|b1", "(4,)", []byte{0, 0, 1, 0}))}) + "/a.npz"}
	arrays.Standardise = true
	scaled, run := written(t, "csv", table)
	fromArrays, _ := written(t, "npz", arrays)
	like := Options{Src: files(t,
		map[string][]byte{"nodes.csv": []byte("id,f,a,b,split\n9,1,-5,1,train\n8,3,6,2,test\n"), "edges.csv": []byte("src,dst\n9,8\n")})}
	like.Like = scaled.Dir
	newer, _ := written(t, "csv", like)
	for name, d := range map[string]*graph.Dataset{"csv": scaled, "npz": fromArrays, "like": newer} {
		if !slices.Equal(d.Meta.TargetScaling, want) || d.Targets[0] != 100 && name != "like" {
			t.Errorf("%s: targets %v scaled by %v, want %v", name, d.Targets, d.Meta.TargetScaling, want)
		}
	}
	like.Src = files(t, map[string][]byte{"nodes.csv": []byte("id,f\n9,1\n8,3\n"), "edges.csv": []byte("src,dst\n9,8\n")})
	if d, _ := written(t, "csv", like); d.Meta.Classes != 0 || scaled.Meta.Schema().Fits("predict", d.Dir, d.Meta, everyUse) != nil {
		t.Errorf("a table without labels has %d classes, and does not fit its model", d.Meta.Classes)
	}
	if strings.Contains(run, "with --standardise") {
		t.Error(run)
	}
	table.Standardise = false
	if d, log := written(t, "csv", table); d.Meta.TargetScaling != nil || !strings.Contains(log,
		"column 0 of the labels has mean 200 and deviation 100: training converges badly; import with --standardise") {
		t.Errorf("%v %s", d.Meta.TargetScaling, log)
	}
	classes := Options{Src: files(t, map[string][]byte{"a.npz": tinyPyG()}) + "/a.npz", Dst: t.TempDir() + "/out"}
	classes.Standardise = true
	if _, err := Import("npz", classes); fault.KindOf(err) != fault.Usage {
		t.Errorf("--standardise of classes in arrays: %v", err)
	}
}
