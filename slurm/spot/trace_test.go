package spot

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// options are those of a trace with many moments.
func options() GenerateOptions {
	return GenerateOptions{Machines: 64, Hours: 200, Rate: 0.25, Zones: 3, Bulk: 3, Across: 7.0 / 127, Regrow: 20, Seed: 1}
}

func generate(t *testing.T, o GenerateOptions) *Trace {
	t.Helper()
	trace, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Moments of a long trace have the requested rate, size and fraction in one zone. About 1,070
// moments have relative standard deviations of 3 % (number), 2.5 % (size) and 0.7 % (zone); the
// tolerances are four of them. Machines that are missing and zones with few machines lower the
// rate.
func TestGenerate(t *testing.T) {
	s := generate(t, options()).Statistics()
	expected := 0.25 * 64 * 200 / 3
	if math.Abs(float64(s.Moments)/expected-1) > 0.12 {
		t.Errorf("%d moments, expected about %.0f", s.Moments, expected)
	}
	if s.LostPerMoment < 2.6 || s.LostPerMoment > 3.3 {
		t.Errorf("%.2f machines per moment", s.LostPerMoment)
	}
	if one := float64(s.OneZone) / float64(s.Moments); math.Abs(one-120.0/127) > 0.028 {
		t.Errorf("%.3f of the moments are in one zone", one)
	}
	if s.Zones != 3 || s.Machines != 64 || s.MeanMachines > 63 || s.MeanMachines < 50 || math.Abs(s.PercentPerHour-25) > 3.5 {
		t.Errorf("%+v", s)
	}
	if s := generate(t, GenerateOptions{Machines: 4, Hours: 1, Zones: 2, Bulk: 1, Regrow: 1}).
		Statistics(); s.Lost != 0 || s.MeanMachines != 4 {
		t.Errorf("%+v without losses", s)
	}
}

// Statistics of a trace by hand.
func TestStatistics(t *testing.T) {
	trace, err := ReadTrace(write(t,
		"0,add,a@0\n0,add,b@0\n0,add,c@1\n0,add,e@1\n3600000,remove,a@0\n3600000,remove,b@0\n5400000,add,d@1\n7200000,remove,c@1\n7200000,remove,d@1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Statistics{Hours: 2, Machines: 4, MeanMachines: (4 + 2*0.5 + 3*0.5) / 2, Added: 1, Lost: 4, Moments: 2, OneZone: 2, Zones: 2,
		LostPerMoment: 2, PercentPerHour: 50, HighestPercent: 100}
	got := trace.Statistics()
	if got != want {
		t.Errorf("%+v\n%+v", got, want)
	}
}

// Both formats are read as they were written. Files of events keep zones; files of counts keep the
// number of machines at each moment.
func TestFiles(t *testing.T) {
	o := options()
	o.Hours = 24
	trace := generate(t, o)
	for _, format := range []string{ByNode, ByCount} {
		path := filepath.Join(t.TempDir(), format)
		if err := trace.Write(path, format); err != nil {
			t.Fatal(err)
		}
		again, err := ReadTrace(path)
		if err != nil {
			t.Fatal(err)
		}
		a, b := trace.Statistics(), again.Statistics()
		if format == ByNode && !slices.Equal(trace.Events, again.Events) {
			t.Error("events differ")
		}
		if format == ByCount && (b.Zones != 0 || b.OneZone != 0) {
			t.Errorf("%+v", b)
		}
		if a.Machines != b.Machines || a.Moments != b.Moments || a.Lost != b.Lost {
			t.Errorf("%s: %+v\n%+v", format, a, b)
		}
		second := filepath.Join(t.TempDir(), format)
		if err := again.Write(second, format); err != nil {
			t.Fatal(err)
		}
		x, _ := os.ReadFile(path)
		if y, _ := os.ReadFile(second); !bytes.Equal(x, y) {
			t.Errorf("%s: a second file differs", format)
		}
	}
	if err := trace.Write(filepath.Join(t.TempDir(), "x"), "json"); fault.KindOf(err) != fault.Usage {
		t.Error(err)
	}
}

// An invalid line is named with its number and value.
func TestBadLines(t *testing.T) {
	for text, want := range map[string]string{
		"0,3\n5,x\n":                        `line 2: "5,x": "x" is not a number of machines`,
		"0,3\n\n5,-1\n":                     `line 3: "5,-1"`,
		"0,3\n5\n":                          `line 2: "5": 1 columns`,
		"0,add,a\n5,3\n":                    `line 2: "5,3": 2 columns`,
		"0,add,a\n5,add,a\n":                `node "a" is already present`,
		"0,add,a\n5,remove,b\n":             `node "b" is not present`,
		"0,add,a\n5,drop,a\n":               `"drop" is neither add nor remove`,
		"0,add,\n":                          "no node",
		"0,add,a@x\n":                       `zone "x"`,
		"7,3\n5,2\n":                        `time "5" is before`,
		"NaN,3\n":                           `time "NaN"`,
		"-1,3\n":                            `time "-1"`,
		"1e12,3\n":                          `time "1e12"`,
		"0,1000000000\n":                    "1000000000",
		"":                                  "no machine joins",
		"0,0\n":                             "no machine joins",
		"0,add," + strings.Repeat("x", 1e5): "line 1",
	} {
		path := write(t, text)
		_, err := ReadTrace(path)
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) || fault.ExitCode(err) != 65 {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := ReadTrace(filepath.Join(t.TempDir(), "none")); fault.KindOf(err) != fault.Missing {
		t.Error(err)
	}
}

// No file makes the reader or a simulation panic or hang.
func FuzzReadTrace(f *testing.F) {
	for _, text := range []string{"0,3\n5,1\n", "0,add,a@1\n5,remove,a\n5,add,a\n", "0,add,a\n0,remove,a\n", "#\n\n1.5,2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace(write(t, text))
		if err != nil || trace.Seconds > 1e6 || len(trace.Events) > 1000 {
			return
		}
		trace.Statistics()
		in, _ := Named("bert")
		in.Depth, in.MinDepth, in.Replicas = 2, 1, 2
		for _, e := range Systems() {
			checkRun(t, e.Name, Simulate(in, Source{Trace: trace}, e.New()))
		}
	})
}

// Options outside their ranges are refused with their flag.
func TestBadOptions(t *testing.T) {
	for flag, change := range map[string]func(*GenerateOptions){
		"machines": func(o *GenerateOptions) { o.Machines = 0 },
		"hours":    func(o *GenerateOptions) { o.Hours = math.NaN() },
		"rate":     func(o *GenerateOptions) { o.Rate = -1 },
		"zones":    func(o *GenerateOptions) { o.Zones = 0 },
		"bulk":     func(o *GenerateOptions) { o.Bulk = 0.5 },
		"across":   func(o *GenerateOptions) { o.Across = 2 },
		"regrow":   func(o *GenerateOptions) { o.Regrow = 0 },
	} {
		o := options()
		change(&o)
		if _, err := Generate(o); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--"+flag+"=") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// A trace replaces only another trace.
func TestWriteReplaces(t *testing.T) {
	trace := generate(t, options())
	path := filepath.Join(t.TempDir(), "file")
	for _, tc := range []struct {
		before string
		ok     bool
	}{{"0,add,a\n", true}, {"0.5,3\n20,2\n", true}, {"# notes\n", false}, {"", false}, {"a,b\n1,2\n", false}, {"\x7fELF", false}} {
		if err := os.WriteFile(path, []byte(tc.before), 0o644); err != nil {
			t.Fatal(err)
		}
		err := trace.Write(path, ByNode)
		text, _ := os.ReadFile(path)
		if (err == nil) != tc.ok || !tc.ok && (fault.KindOf(err) != fault.Usage || string(text) != tc.before) {
			t.Errorf("%q: %v", tc.before, err)
		}
	}
}
