package importers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// timed returns a table of ten vertices with these times; those at unlabelled have no label.
func timed(times string, unlabelled ...int) string {
	text := "id,label,x,when\n"
	for i, at := range strings.Split(times, " ") {
		label := fmt.Sprint(i % 2)
		if slices.Contains(unlabelled, i) {
			label = ""
		}
		text += fmt.Sprintf("v%d,%s,%d,%s\n", i, label, i*i%7, strings.ReplaceAll(at, "_", " "))
	}
	return text
}

// TestSplitByTime: the oldest labelled vertices are for training, the newest for the test,
// and vertices of one time are in one set.
func TestSplitByTime(t *testing.T) {
	const newest = "10 9 8 7 6 5 4 3 2 1"
	for _, c := range []struct {
		name, nodes string
		o           Options
		want        []uint8
		says        string
	}{
		{"numbers", timed(newest), Options{}, []uint8{3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
			"split=by_time column=when train=6 val=2 test=2, training from 1 on, validation from 7 on, test from 9 on\n"},
		{"sizes", timed(newest), Options{SplitSizes: "80/10/10"}, []uint8{3, 2, 1, 1, 1, 1, 1, 1, 1, 1}, "train=8 val=1 test=1"},
		{"without a label", timed(newest, 0, 1, 2, 3, 4), Options{}, []uint8{0, 0, 0, 0, 0, 3, 2, 1, 1, 1}, "train=3 val=1 test=1"},
		{"without a time", timed("10 9 8 7 6 5 4 3 2 NA", 9), Options{SplitSizes: "50/25/25"},
			[]uint8{3, 3, 2, 2, 1, 1, 1, 1, 1, 0}, "train=5 val=2 test=2"},
		{"equal times", timed("1 1 1 1 2 2 2 2 3 3"), Options{}, []uint8{1, 1, 1, 1, 2, 2, 2, 2, 3, 3}, "train=4 val=4 test=2"},
		{"most at one time", timed("1 2 3 3 3 3 3 3 3 3"), Options{}, []uint8{1, 2, 3, 3, 3, 3, 3, 3, 3, 3}, "train=1 val=1 test=8"},
		{"dates", timed("2024-05-14 2024-05-13 2020-01-01 2021-01-01 2022-01-01"), Options{}, []uint8{3, 2, 1, 1, 1},
			"training from 2020-01-01 on, validation from 2024-05-13 on, test from 2024-05-14 on\n"},
		{"time zones", timed("2024-05-14_10:00+02:00 2024-05-14_09:00Z 2024-05-14_10:00+01:30"), Options{SplitSizes: "34/33/33"},
			[]uint8{1, 3, 2}, "training from 2024-05-14T08:00:00Z on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.SplitByTime = "when"
			got, err := importTable(t, c.nodes, "src,dst\n", c.o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Split, c.want) {
				t.Errorf("split %v, want %v", got.Split, c.want)
			}
			if !strings.Contains(got.log, c.says) || !strings.Contains(got.log, "dropped column=when: the split uses this column") {
				t.Errorf("log lacks %q:\n%s", c.says, got.log)
			}
			if got.Features.Dim != 1 || !strings.HasPrefix(got.Table.Split, "by the time in when: ") {
				t.Errorf("%d features, split %q", got.Features.Dim, got.Table.Split)
			}
		})
	}
	src := datedParquet(t)
	for _, column := range []string{"day", "ms", "us", "ns"} {
		o := Options{Src: src, SplitSizes: "40/20/40", TableOptions: TableOptions{SplitByTime: column, Dates: []string{"day"}}}
		got := mustLoad(t, "parquet", o)
		if want := []uint8{1, 2, 3, 3, 1}; !slices.Equal(got.Split, want) || !strings.Contains(got.log, "training from 1969-12-31") {
			t.Errorf("%s: split %v, want %v, log\n%s", column, got.Split, want, got.log)
		}
		if !strings.Contains(got.log, "dropped column=split: the flags select another split") {
			t.Errorf("the column split is a feature:\n%s", got.log)
		}
	}
}

func TestBadSplits(t *testing.T) {
	by := TableOptions{SplitByTime: "when"}
	for _, c := range []struct {
		nodes string
		o     Options
		kind  fault.Kind
		want  string
	}{
		{timed("1 2 NA 4"), Options{TableOptions: by}, fault.Data,
			`line 4 column 4 (when): "" is the time of a vertex with a label; write its time`},
		{timed("1 2 May 4"), Options{TableOptions: by}, fault.Data,
			`line 4 column 4 (when): "May" is not a time; write dates as 2024-05-14`},
		{timed("2024-05-14 2024 3"), Options{TableOptions: by}, fault.Data,
			`line 3 column 4 (when): "2024" is a time in another format than 2024-05-14 in line 2; write all times in one format`},
		{timed("2024-05-14_10:00 2024-05-15 2024-05-14_11:00Z"), Options{TableOptions: by}, fault.Data,
			`line 4 column 4 (when): "2024-05-14 11:00Z" and 2024-05-14 10:00 in line 2: one has a time zone, the other has none; ` +
				`write all times with a time zone`},
		{timed("1 1 1 1 2 2 2 2"), Options{TableOptions: by}, fault.Data,
			"column 4 (when): the 8 labelled vertices have fewer than three " +
				"different times; name a column with more times, or leave --split-by-time out"},
		{timed("1 2 3"), Options{TableOptions: TableOptions{SplitByTime: "then"}}, fault.Data,
			`no column "then"; the columns are: id, label, x, when; name the column with --split-by-time`},
		{timed("1 2 3"), Options{TableOptions: by, SplitSizes: "60/40"}, fault.Usage,
			"--split-sizes=60/40; give three percentages above 0 that add up to 100, such as 60/20/20"},
		{timed("1 2 3"), Options{TableOptions: by, Split: "when"}, fault.Usage,
			"--split, --split-by-time and --stratify exclude each other"},
		{timed("1 2 3"), Options{TableOptions: by, Stratify: true}, fault.Usage, "give one of them"},
		{"id,a,b,x\n1,0,1,1\n2,1,1,1\n", Options{Stratify: true, TableOptions: TableOptions{Label: "a,b"}}, fault.Usage,
			"--stratify samples within classes, but the labels are for multilabel"},
	} {
		_, err := importTable(t, c.nodes, "src,dst\n", c.o)
		if fault.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	for _, o := range []Options{{Stratify: true}, {SplitSizes: "80/10/10"}} {
		o.Src = files(t, tinyRaw())
		if _, err := load(t, "raw", o); fault.KindOf(err) != fault.Usage ||
			!strings.Contains(fmt.Sprint(err), "the source has its own split; leave them out") {
			t.Errorf("got %v", err)
		}
	}
}

// TestStratified: --stratify divides each class among all three sets, in tables and in other
// formats with a random split; a column "split" is then not a feature.
func TestStratified(t *testing.T) {
	nodes, split := "id,label,x,split\n", [...]string{"train", "val"}
	for v := range 200 {
		class := "common"
		if v%20 == 0 {
			class = "rare"
		}
		nodes += fmt.Sprintf("%d,%s,%d,%s\n", v, class, v%7, split[v%2])
	}
	for _, c := range []struct {
		sizes        string
		common, rare [4]int
	}{
		{"", [4]int{0, 114, 38, 38}, [4]int{0, 6, 2, 2}},
		{"80/10/10", [4]int{0, 152, 19, 19}, [4]int{0, 8, 1, 1}},
	} {
		got, err := importTable(t, nodes, "src,dst\n", Options{Stratify: true, SplitSizes: c.sizes, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		perClass := [2][4]int{}
		for v, s := range got.Split {
			perClass[got.Labels[v]][s]++
		}
		if perClass != [2][4]int{c.common, c.rare} || got.Features.Dim != 1 || !strings.Contains(got.log, "within each class\n") {
			t.Errorf("%s: common %v, rare %v, %d features, log\n%s", c.sizes, perClass[0], perClass[1], got.Features.Dim, got.log)
		}
	}
	got, err := importTable(t, "id,label,x\n1,a,1\n2,a,2\n3,b,3\n", "src,dst\n", Options{Stratify: true})
	if err != nil || !strings.Contains(got.log, "warning: 2 classes have too few labelled vertices for all three sets") {
		t.Errorf("%v, log\n%s", err, got.log)
	}
	npz := mustLoad(t, "npz",
		Options{Src: files(t, map[string][]byte{"tiny.npz": tinyNpz()}) + "/tiny.npz", Stratify: true, SplitSizes: "50/25/25"})
	if n := counts(npz.Split); n != [4]int{0, 2, 2, 0} || npz.Split[0] == graph.SplitNone {
		t.Errorf("split of npz is %v", npz.Split)
	}
}
