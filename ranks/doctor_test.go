package ranks

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Each problem of a world is reported once per host or rank concerned.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	rank := func(host string, cpus int, version string) rankInfo {
		return rankInfo{Host: host, CPUs: cpus, Version: version}
	}
	for _, tc := range []struct {
		name string
		all  []rankInfo
		says []string
	}{
		{"nothing", []rankInfo{rank("a", 2, "1"), rank("a", 2, "1"), rank("b", 1, "1")}, nil},
		{"bound", []rankInfo{rank("a", 1, "1"), rank("a", 1, "1"), rank("b", 2, "1"), rank("b", 2, "1")},
			[]string{"rank 0 may run on 1 processors of a"}},
		{"mixed", []rankInfo{rank("a", 1, "1"), rank("b", 1, "2")}, []string{"rank 1 on b is siafu 2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := diagnose(tc.all)
			if len(got) != len(tc.says) {
				t.Fatalf("%q, want %q", got, tc.says)
			}
			for i, want := range tc.says {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q lacks %q", got[i], want)
				}
			}
		})
	}
}

// Rank 0 reports on every rank and every pair.
func TestDoctorOfAWorld(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := inproc.Run(3, func(c world.Comm) error { return doctorWorld(c, &doctorReport{out: &out}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rank=0 host=", "rank=2 host=", "\nlink a=0 b=1 latency_us=", "\nlink a=1 b=2 ", "slowest_link a="} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("it does not say %q once:\n%s", want, out.String())
		}
	}
}

// The JSON report has the same facts, with numbers as numbers.
func TestDoctorAsJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := &doctorReport{out: &out, kept: true}
	f.add("host", "", "name", "a b", "cpus", 2)
	f.add("", "none", "rank", 0)
	f.add("launcher none", "start it")
	if err := f.end(); err != nil {
		t.Fatal(err)
	}
	var said map[string][]map[string]any
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	want := map[string][]map[string]any{
		"host": {{"name": "a b", "cpus": 2.}}, "rank": {{"rank": 0., "note": "none"}}, "launcher": {{"note": "start it"}},
	}
	if !reflect.DeepEqual(said, want) {
		t.Errorf("%v, want %v", said, want)
	}
}
