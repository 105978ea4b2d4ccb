package importers

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"pgregory.net/rapid"

	"siafu/graph"
	"siafu/internal/fault"
)

// TestReadInstant: dates of ISO 8601 and numbers of each unit match package time, and other
// texts are refused.
func TestReadInstant(t *testing.T) {
	for _, c := range []struct{ format, cell, want string }{
		{"", "2024-02-29", "2024-02-29"},
		{"", "2024-05-14T13:22:10.5Z", "2024-05-14T13:22:10.5Z"},
		{"", "2024-05-14 13:22", "2024-05-14T13:22:00Z"},
		{"", "2024-05-14 01:22:10+02", "2024-05-13T23:22:10Z"},
		{"", "2024-05-14T23:22:10-0130", "2024-05-15T00:52:10Z"},
		{"", "2024-05-14 13:22:10.123456789+00:00", "2024-05-14T13:22:10.123456Z"},
		{"", "2024-05-14 13:22:10 UTC", "2024-05-14T13:22:10Z"},
		{"", "0001-01-01", "0001-01-01"},
		{"s", "1715692930", "2024-05-14T13:22:10Z"},
		{"s", "1715692930.5", "2024-05-14T13:22:10.5Z"},
		{"s", "-1", "1969-12-31T23:59:59Z"},
		{"ms", "1715692930500", "2024-05-14T13:22:10.5Z"},
		{"us", "1715692930500000", "2024-05-14T13:22:10.5Z"},
		{"ns", "1715692930123456789", "2024-05-14T13:22:10.123456Z"},
		{"ns", "-1", "1969-12-31T23:59:59.999999Z"},
		{"days", "19857", "2024-05-14"},
		{"days", "-1", "1969-12-31"},
		{compactDate, "20240229", "2024-02-29"},
		{compactDate, "2024-02-29", "2024-02-29"}, // ISO 8601 is read in any format
	} {
		if at, ok := readInstant([]byte(c.cell), c.format); !ok || at.String() != c.want {
			t.Errorf("%q in %q is %v, %t, want %s", c.cell, c.format, at, ok, c.want)
		}
	}
	for _, c := range []struct{ format, cell string }{
		{"", "2023-02-29"}, {"", "2024-13-01"}, {"", "2024-00-10"}, {"", "0000-01-01"}, {"", "2024-5-14"},
		{"", "14-05-2024"}, {"", "2024/05/14"},
		{"", "2024-05-14T"}, {"", "2024-05-14T24:00"}, {"", "2024-05-14T13"}, {"", "2024-05-14T13:60"}, {"", "2024-05-14T13:22.5"},
		{"", "2024-05-14T13:22:10+25"},
		{"", "2024-05-14T13:22:10 CET"}, {"", "2024-05-14x13:22"}, {"", "20240514"}, {"", ""},
		{"", "2024-05-14T13-22"}, {"", "2024-05-14T13:22:10:00"},
		// package time reads the first three
		{"", "2024-05-14T3:22:10.5"}, {"", "2024-05-14  3:22"}, {"", "2024-05-14T13:22:10,5"},
		{"", "2024-05-14T13:22:10."}, {"", "2024-05-14T13:22:"},
		// and the first two of these
		{"", "2024-05-14T13:22+24:00"}, {"", "2024-05-14T13:22+02:60"}, {"", "2024-05-14T13:22+02:"}, {"", "2024-05-14T13:22 "},
		{"s", "1e300"}, {"s", "x"}, {"days", "9999999"}, {"ns", "9223372036854775808000"}, {compactDate, "20230229"},
		{compactDate, "2024051"}, {compactDate, "+2240514"},
	} {
		if at, ok := readInstant([]byte(c.cell), c.format); ok {
			t.Errorf("%q in %q is %v", c.cell, c.format, at)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // what is printed is read again
		want := instant{micros: rapid.Int64Range(-62135596800, 253402300799).
			Draw(t, "seconds")*1_000_000 + rapid.Int64Range(0, 999_999).Draw(t, "micros")}
		if got, ok := readInstant([]byte(want.String()), ""); !ok || got.micros != want.micros {
			t.Fatalf("%v is read as %v, %t", want, got, ok)
		}
	})
}

// dated are the points in time of the tests below: three for training, two others.
var dated = []time.Time{
	time.Date(2023, 1, 1, 6, 0, 0, 0, time.UTC), // a Sunday
	time.Date(2023, 7, 3, 12, 0, 0, 0, time.UTC),
	time.Date(2023, 12, 31, 18, 0, 0, 0, time.UTC),
	time.Date(2024, 5, 14, 0, 0, 0, 0, time.UTC),
	time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
}

// wantDate returns the features of one of dated, computed with package time; the first three
// are for training.
func wantDate(at time.Time, width int) []float32 {
	days := func(at time.Time) float64 { return float64(at.Unix()) / 86400 }
	if width == dateFeatures {
		truncated := func(at time.Time) float64 { return math.Floor(float64(at.Unix()) / 86400) }
		days = truncated
	}
	mean, squares := 0.0, 0.0
	for _, at := range dated[:3] {
		mean += days(at) / 3
	}
	for _, at := range dated[:3] {
		squares += (days(at) - mean) * (days(at) - mean) / 3
	}
	x := []float32{float32((days(at) - mean) / math.Sqrt(squares))}
	clock := float64(at.Hour()*3600+at.Minute()*60+at.Second()) / 86400
	for _, phase := range []float64{days(at) / 365.2425, float64((at.Weekday()+6)%7) / 7, clock} {
		x = append(x, float32(math.Sin(2*math.Pi*phase)), float32(math.Cos(2*math.Pi*phase)))
	}
	return x[:width]
}

// datedTable returns a table of vertices with a column of dates, formatted by write.
func datedTable(write func(time.Time) string) string {
	text := "id,label,split,when\n"
	for i, at := range dated {
		text += fmt.Sprintf("v%d,%d,%s,%s\n", i, i%2, [...]string{"train", "train", "train", "val", "test"}[i], write(at))
	}
	return text
}

func checkDates(t *testing.T, got *loaded, width int) {
	t.Helper()
	if got.Features.Dim != width {
		t.Fatalf("%d features, want %d; log\n%s", got.Features.Dim, width, got.log)
	}
	for v, at := range dated[:got.Vertices] {
		for f, want := range wantDate(at, width) {
			// float32, and Sin of large angles
			if x := got.dense[v*width+f]; math.Abs(float64(x-want)) > 2e-6*max(1, math.Abs(float64(want))) {
				t.Errorf("feature %d of %s is %v, want %v", f, at, x, want)
			}
		}
	}
}

// TestDateColumns: dates have the same features in each notation, in CSV and in Parquet.
func TestDateColumns(t *testing.T) {
	asked := TableOptions{Dates: []string{"when"}}
	unix := func(unit time.Duration) func(time.Time) string {
		return func(at time.Time) string { return fmt.Sprint(at.UnixNano() / int64(unit)) }
	}
	for _, c := range []struct {
		name  string
		write func(time.Time) string
		o     TableOptions
		width int
		says  string
	}{
		{"ISO 8601", func(at time.Time) string { return at.Format(time.RFC3339) }, TableOptions{}, 7,
			"column=when kind=date features=7 mean=2023-07-02T20:00:00Z scale=148.807_days\n"},
		{"another time zone", func(at time.Time) string {
			return at.In(time.FixedZone("", -5*3600)).
				Format(time.RFC3339)
		}, TableOptions{}, 7, ""},
		{"as pandas writes it", func(at time.Time) string { return at.Format(time.DateTime) }, TableOptions{}, 7, ""},
		{"days", func(at time.Time) string { return at.Format(time.DateOnly) }, TableOptions{}, 5, "kind=date features=5"},
		{"seconds", unix(time.Second), asked, 7, "format=s\n"},
		{"milliseconds", unix(time.Millisecond), asked, 7, "format=ms\n"},
		{"microseconds", unix(time.Microsecond), asked, 7, "format=us\n"},
		{"nanoseconds", unix(time.Nanosecond), asked, 7, "format=ns\n"},
		{"eight digits", func(at time.Time) string { return at.Format("20060102") }, asked, 5, "format=yyyymmdd\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := importTable(t, datedTable(c.write), "src,dst\n", Options{TableOptions: c.o})
			if err != nil {
				t.Fatal(err)
			}
			checkDates(t, got, c.width)
			if !strings.Contains(got.log, c.says) {
				t.Errorf("log lacks %q:\n%s", c.says, got.log)
			}
		})
	}
	src := datedParquet(t)
	for column, width := range map[string]int{"day": 5, "ms": 7, "us": 7, "ns": 7, "old": 7} {
		t.Run("parquet "+column, func(t *testing.T) {
			checkDates(t, mustLoad(t, "parquet", Options{Src: src, TableOptions: TableOptions{Features: []string{column}}}), width)
		})
	}
}

// spark returns a timestamp in Spark's format: nanoseconds of the day, and the Julian day.
func spark(at time.Time) deprecated.Int96 {
	midnight := at.Truncate(24 * time.Hour)
	nanos := uint64(at.Sub(midnight))
	days := midnight.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) / (24 * time.Hour) // 2000-01-01 is Julian day 2451545
	return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(2451545 + int64(days))}
}

// datedParquet returns a folder of Parquet tables with dated in each of the format's types.
func datedParquet(t *testing.T) string {
	t.Helper()
	type row struct {
		ID    string `parquet:"id"`
		Label int32  `parquet:"label"`
		Split string `parquet:"split"`
		Day   int32  `parquet:"day,date"`
		Ms    int64  `parquet:"ms,timestamp(millisecond)"`
		Us    int64  `parquet:"us,timestamp(microsecond)"`
		Ns    *int64 `parquet:"ns,optional,timestamp(nanosecond)"`

		Old deprecated.Int96 `parquet:"old"`
	}
	var rows []row
	for i, at := range dated {
		ns, set := at.UnixNano(), [...]string{"train", "train", "train", "val", "test"}[i]
		rows = append(rows, row{fmt.Sprint("v", i), int32(i % 2), set, int32(math.Floor(float64(at.Unix()) / 86400)), at.UnixMilli(),
			at.UnixMicro(), &ns, spark(at)})
	}
	dir := t.TempDir()
	if err := parquet.WriteFile(filepath.Join(dir, "nodes.parquet"), rows); err != nil {
		t.Fatal(err)
	}
	type edge struct {
		Src string `parquet:"src"`
		Dst string `parquet:"dst"`
	}
	if err := parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edge{{"v0", "v1"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLikeDates: new rows get the features of the earlier import for any notation of dates. An
// earlier import as numbers stays numeric.
func TestLikeDates(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first")
	src := files(t, map[string][]byte{"nodes.csv": []byte(datedTable(func(at time.Time) string { return at.Format(time.RFC3339) })),
		"edges.csv": []byte("src,dst\n")})
	if _, err := Import("csv", Options{Src: src, Dst: first}); err != nil {
		t.Fatal(err)
	}
	like := func(rows string) (*loaded, error) {
		return importTable(t, "id,when\n"+rows, "src,dst\n", Options{TableOptions: TableOptions{Like: first}})
	}
	got, err := like("a,2023-01-01T06:00:00Z\nb,2023-07-03 12:00\n")
	if err != nil {
		t.Fatal(err)
	}
	checkDates(t, got, clockFeatures)
	for rows, want := range map[string]string{
		"a,2023-01-01\nb,7/3/2023\n": `line 3 column 2 (when): "7/3/2023" is not a date; write dates as 2024-05-14`,
		"a,1688385600\n":             `line 2 column 2 (when): "1688385600" is not a date`,
		"a,\n":                       `line 2 column 2 (when): the cell has no value; fill missing cells`,
	} {
		if _, err := like(rows); fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: got %v, want %q", rows, err, want)
		}
	}
	numbers := &graph.Schema{Table: &graph.Table{ID: "id", Label: "label", Split: "split",
		Columns: []graph.Column{{Name: "us", Kind: graph.NumberColumn, Width: 1, Scale: 1e6}}}, Classes: 2}
	got = mustLoad(t, "parquet", Options{Src: datedParquet(t), Schema: numbers, TableOptions: TableOptions{Like: "run"}})
	if want := float32(dated[1].Unix()); got.Features.Dim != 1 || got.dense[1] != want {
		t.Errorf("features are %v, want %v", got.dense, want)
	}
}

// TestMissingDates: a missing date sets no feature where --fill allows it.
func TestMissingDates(t *testing.T) {
	nodes := datedTable(func(at time.Time) string {
		if at.Year() == 2024 {
			return "NaT"
		}
		return at.Format(time.RFC3339)
	})
	for _, fill := range []string{"mean", "zero"} {
		got, err := importTable(t, nodes, "src,dst\n", Options{TableOptions: TableOptions{Fill: fill}})
		if err != nil {
			t.Fatal(err)
		}
		if x := got.dense[3*7 : 4*7]; !slices.Equal(x, make([]float32, 7)) || !strings.Contains(got.log, "missing=1") {
			t.Errorf("--fill %s: features are %v, log\n%s", fill, x, got.log)
		}
	}
}

// TestBadDates: dates in different notations are refused with position, value and remedy if
// --dates requests them, else dropped with the same message.
func TestBadDates(t *testing.T) {
	table := func(cells ...string) string {
		text := "id,label,x,when\n"
		for i, cell := range cells {
			text += fmt.Sprintf("%d,%d,1,%s\n", i, i%2, cell)
		}
		return text
	}
	asked := TableOptions{Dates: []string{"when"}}
	for _, c := range []struct {
		name, nodes string
		o           TableOptions
		want        string // of the error, or else of the log
		fails       bool
	}{
		{"another notation", table("2024-05-14", "05/15/2024", "2024-05-16"), asked,
			`line 3 column 4 (when): "05/15/2024" is not a date; write dates as 2024-05-14 or 2024-05-14T13:22:10Z`, true},
		{"no such day", table("2024-02-30", "2024-03-01"), asked, `line 2 column 4 (when): "2024-02-30" is not a date`, true},
		{"numbers between", table("2024-05-14", "20240515", "2024-05-16"), asked, `line 3 column 4 (when): "20240515" is a number, but 2 ` +
			`other cells are dates such as 2024-05-14; write all dates in one format`, true},
		{"years", table("1999", "2024"), asked,
			`line 2 column 4 (when): "1999" is not a date: numeric dates are as 20240514, or seconds`, true},
		{"one without a zone", table("2024-05-14T10:00Z", "2024-05-14T10:00", "2024-05-14T10:00Z"), asked,
			`line 3 column 4 (when): "2024-05-14T10:00" has no time zone, unlike 2 other cells such as ` +
				`2024-05-14T10:00Z; write all times ` +
				`with a time zone, or all without`, true},
		{"one with a zone", table("2024-05-14T10:00Z", "2024-05-14T10:00", "2024-05-14 11:00"), TableOptions{},
			`dropped column=when: line 2 column 4 (when): "2024-05-14T10:00Z" has a time zone`, false},
		{"mostly dates", table("2024-05-14", "later", "2024-05-16"), TableOptions{},
			`dropped column=when: 2 of 3 cells are dates, and "later" in line 3 is not: write dates as 2024-05-14`, false},
		{"another notation, not asked for", table("05/14/2024", "05/15/2024", "05/16/2024 10:00"), TableOptions{},
			`dropped column=when: "05/14/2024" in line 2 looks like a date in an unsupported format: write dates as`, false},
		{"eight digits, not asked for", table("20240514", "20240515"), TableOptions{},
			"warning: column=when has numbers such as 20240514, which look like dates: use --dates when", false},
		{"two units", table("1715692930000", "1715692930", "1715692930001"), asked,
			"warning: column=when: 1715692930 in line 3 is read as ms since 1970, which is 1970-01-20T20:34:52.93Z", false},
		{"none at all", table("", ""), asked, "dropped column=when: it is empty", false},
		{"none in training", "id,label,x,split,when\na,0,1,train,\nb,1,1,test,2024-05-14\n", TableOptions{Fill: "zero"},
			"column 5 (when): no training row has a date; leave the column out with --features", true},
	} {
		got, err := importTable(t, c.nodes, "src,dst\n", Options{TableOptions: c.o})
		text := fmt.Sprint(err)
		if err == nil {
			text = got.log
		}
		if (err != nil) != c.fails || c.fails && fault.KindOf(err) != fault.Data || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %s, want %s", c.name, text, c.want)
		}
	}
}
