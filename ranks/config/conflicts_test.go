package config

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Conflicts and their remedies name flags that exist, and no variable without a value.
func TestConflictsNameFlags(t *testing.T) {
	c := Defaults()
	var flags []string
	for f := range c.Options() {
		flags = append(flags, f.Tag.Get("toml"))
	}
	named := regexp.MustCompile(`--([a-z-]+)`)
	for line := range strings.Lines(ConflictTable("")) {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			if m[1] != "drop-weights" && !slices.Contains(flags, m[1]) { // the former is a flag of import
				t.Errorf("there is no flag --%s: %s", m[1], line)
			}
		}
		if strings.Contains(line, "--model ,") || strings.Contains(line, "  ") {
			t.Errorf("a variable without a value: %s", line)
		}
	}
	for _, c := range conflicts {
		for _, f := range []fact{c.a, c.b} {
			for flag := range strings.FieldsSeq(f.flags) {
				if !slices.Contains(flags, flag) {
					t.Errorf("%s: there is no flag %s", f.name, flag)
				}
			}
		}
	}
	if got := ConflictTable("kernel"); !strings.HasPrefix(got, "--kernel openblas, not with --tensor lambda: choose another --kernel") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("conflicts of --kernel: %q", got)
	}
}

// Ranges in tags accept and describe what they should; no range has NaN or infinity.
func TestRanges(t *testing.T) {
	for text, cases := range map[string]struct {
		in, out []float64
		says    string
	}{
		"0..":      {[]float64{0, 1e9}, []float64{-1}, "0 or more"},
		"-1|0..<1": {[]float64{-1, 0, 0.99}, []float64{-0.5, 1, -2}, "-1, or at least 0 and below 1"},
		">0..1":    {[]float64{0.1, 1}, []float64{0, 1.1}, "above 0 and at most 1"},
		">0..":     {[]float64{1e-9}, []float64{0}, "above 0"},
		"1..65000": {[]float64{1, 65000}, []float64{0, 65001}, "from 1 to 65000"},
	} {
		for _, x := range cases.in {
			if !inRange(text, x) {
				t.Errorf("%v is not in %s", x, text)
			}
		}
		for _, x := range append(cases.out, math.NaN(), math.Inf(1)) {
			if inRange(text, x) {
				t.Errorf("%v is in %s", x, text)
			}
		}
		if got := describeRange(text); got != cases.says {
			t.Errorf("%s reads %q, want %q", text, got, cases.says)
		}
	}
}
