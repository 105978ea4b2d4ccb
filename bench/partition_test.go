package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// fakeMetis is a gpmetis that puts every vertex into the last part.
const fakeMetis = `#!/bin/sh
read n rest < "$3"
i=0
while [ $i -lt $n ]; do echo $(($4 - 1)); i=$((i + 1)); done > "$3.part.$4"
echo "  Partitioning:  1.500 sec   (METIS time)"
echo "  Max memory used:   2.0 MB"
`

func TestPartition(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 200, Edges: 2000}, false); err != nil {
		t.Fatal(err)
	}
	o := PartitionOptions{Data: []string{data}, Parts: []int{2, 3}, Methods: []string{"hash", "multilevel"}, Seeds: 2}
	for name, c := range map[string]struct {
		program     string
		want, never string
	}{
		"with METIS":    {fakeMetis, "3 METIS, all three 0 0.00% 0 3.000 3.000 3.000 0 1.500 2.0", "left out"},
		"without METIS": {"", "left out: METIS: gpmetis is not installed", "METIS, vertices only"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			if c.program != "" {
				hosttest.Program(t, filepath.Join(bin, "gpmetis"), c.program)
			}
			t.Setenv("PATH", bin)
			var out strings.Builder
			if err := o.Run(context.Background(), &out); err != nil {
				t.Fatal(err)
			}
			table := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range []string{c.want, "2 hash", "3 multilevel ", "3 multilevel, vertices only"} {
				if !strings.Contains(table, want) {
					t.Errorf("the table lacks %q:\n%s", want, &out)
				}
			}
			if strings.Contains(table, c.never) {
				t.Errorf("the table has %q:\n%s", c.never, &out)
			}
		})
	}
	o.Seeds = 0
	if err := o.Run(context.Background(), &strings.Builder{}); fault.KindOf(err) != fault.Usage {
		t.Errorf("no seeds: %v", err)
	}
}

// A failure of METIS is reported with its output.
func TestPartitionWhereMetisFails(t *testing.T) {
	bin, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 20, Edges: 50}, false); err != nil {
		t.Fatal(err)
	}
	hosttest.Program(t, filepath.Join(bin, "gpmetis"), "#!/bin/sh\necho out of luck\nexit 3\n")
	t.Setenv("PATH", bin)
	err := PartitionOptions{Data: []string{data}, Parts: []int{2}, Seeds: 1}.Run(context.Background(), &strings.Builder{})
	if fault.KindOf(err) != fault.Runtime || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("%v", err)
	}
}

// The files have the format of METIS's manual: one line per vertex, numbered from 1.
func TestMetisFiles(t *testing.T) {
	in := graph.CSR{Offsets: []int64{0, 1, 3, 3}, Cols: []uint32{1, 0, 2}} // 1→0, 0→1, 2→1
	out := graph.CSR{Offsets: []int64{0, 1, 2, 3}, Cols: []uint32{1, 0, 1}}
	split := []uint8{graph.SplitTrain, 0, 0}
	both := graph.CSR{Offsets: []int64{0, 1, 3, 4}, Cols: []uint32{1, 0, 2, 1}}
	for _, c := range []struct {
		name     string
		ds       *graph.Dataset
		weighted bool
		want     string
	}{
		{"undirected", &graph.Dataset{Meta: &graph.Meta{}, In: both, Out: both, Split: split}, false, "3 2 000\n2 \n1 3 \n2 \n"},
		{"directed, weighted", &graph.Dataset{Meta: &graph.Meta{Directed: true}, In: in, Out: out, Split: split}, true,
			"3 2 011 3\n1 1 1 2 2 \n1 2 0 1 2 3 1 \n1 0 0 2 1 \n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "graph")
			if err := (&metis{ds: c.ds}).write(path, c.weighted); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
				t.Errorf("%q, %v; expected %q", got, err, c.want)
			}
		})
	}
}
