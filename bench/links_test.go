package bench

import (
	"strings"
	"testing"

	"siafu/internal/fault"
)

// Variants are settings with a name and flags; without them there is one setting for each codec
// after the base.
func TestSettingsOfLinks(t *testing.T) {
	list, err := LinksOptions{Variants: []string{" a =--codec int8 --layers 3", "b="}, Codecs: []string{"s2"}}.settings()
	if err != nil || len(list) != 2 || list[0].Variant != "a" ||
		strings.Join(list[0].flags, " ") != "--codec int8 --layers 3" || len(list[1].flags) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	list, err = LinksOptions{Codecs: []string{"s2"}}.settings()
	if err != nil || len(list) != 2 || list[0].Mode != "nopipe" || strings.Join(list[1].flags, " ") != "--codec s2 --mode pipe" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, bad := range [][]string{{"a"}, {"=--layers 3"}, {"--codec=int8"}, {"a=", "a=--layers 3"}} {
		if _, err := (LinksOptions{Variants: bad}).settings(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Runs are compared with the first one of their link and partitioner. Numbers are medians, of
// interfaces over repetitions; a reason stands in for missing bytes.
func TestSummaryOfLinks(t *testing.T) {
	run := func(link, variant string, counted []float64, epochs ...float64) *LinkRun {
		return &LinkRun{Link: link, Variant: variant, Raw: 4e6, Sent: 2e6, counted: counted,
			epochs: epochs, exposed: epochs, medians: []float64{epochs[0], epochs[2]}}
	}
	runs := []*LinkRun{
		run("1gbit", "a", []float64{3e6, 5e6, 4e6}, 0.4, 0.3, 0.5),
		run("1gbit", "b", []float64{1e6}, 0.1, 0.2, 0.3),
		run("10gbit", "a", []float64{1e6}, 0.2, 0.2, 0.2),
		run("10gbit", "b", nil, 0.1, 0.1, 0.1),
	}
	runs[3].Uncounted = "no counters here"
	summarize(runs)
	var out strings.Builder
	if err := printLinks(&out, runs); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"s/epoch minimum exposed s raw MB sent MB interface MB ratio speed-up",
		"1gbit 0 0 a 0.4000 0.4000 0.4000 4.00 2.00 4.00 2.00 1.00",
		"1gbit 0 0 b 0.2000 0.1000 0.2000 4.00 2.00 1.00 2.00 2.00",
		"10gbit 0 0 b 0.1000 0.1000 0.1000 4.00 2.00 - 2.00 2.00",
		"some runs were not counted: no counters here",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if runs[3].Interface != nil {
		t.Errorf("%+v", runs[3])
	}
}
