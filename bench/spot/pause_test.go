//go:build mpi

package spot

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// onPath adds the built program to PATH.
func onPath(t *testing.T) {
	siafu, _ := hosttest.Programs(t)
	t.Setenv("PATH", filepath.Dir(siafu)+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// The part pause has a line for each way to continue, on this host and on hosts of namespaces.
func TestPause(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("ten trainings with losses; set SIAFU_BIG=1")
	}
	onPath(t)
	for _, local := range []bool{true, false} {
		var out bytes.Buffer
		o := Options{Runs: 1, Zones: 1, Seed: 3, Only: []string{"pause"},
			PauseOptions: PauseOptions{Losses: 1, Ranks: 3, Epochs: 16, Rate: "1gbit", Local: local}}
		if err := o.Run(t.Context(), &out); err != nil {
			if !local && fault.KindOf(err) == fault.Missing {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{`--survive 1 [\d.]+ .* [012]\.00 \(\S+ to \S+\) 0 `, `every epoch 1 [\d.]+ .* [012]\.00 \(`,
			`defaults 1 [\d.]+ .* [4-9]\.00 \(`, `relative to that without --survive: \d\.\d+`} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("local=%t: no %q in\n%s", local, want, out.String())
			}
		}
		t.Log(out.String())
	}
}

// The part pipelines trains with each redundancy. A loss between two
// updates resumes none, so only one of the three losses with a redundancy must resume an update.
func TestPipelines(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("eight trainings with losses; set SIAFU_BIG=1")
	}
	onPath(t)
	var out bytes.Buffer
	o := Options{Runs: 1, Zones: 1, Seed: 3, Only: []string{"pipelines"},
		PauseOptions: PauseOptions{Losses: 1, Ranks: 3, Epochs: 12, Rate: "1gbit", Local: true, Train: "--layers 4 --hidden 8"}}
	if err := o.Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if !strings.Contains(text, " 1 of 1 ") {
		t.Errorf("no update was resumed\n%s", out.String())
	}
	const seconds = ` \d+\.\d\d \(\S+ to \S+\)`
	for redundancy, cells := range map[string]string{"off": "0", "lflb": `-?\d\S+ \(\S+ to \S+\) 7.01, 7.65 [01]`,
		"eflb": `-?\d\S+ \(\S+ to \S+\) 19.77, 9.51 [01]`, "efeb": `-?\d\S+ \(\S+ to \S+\) 71.51, 64.24 [01]`} {
		if want := " " + redundancy + ` 1 \d\.\d{3} ` + cells + " of 1" + seconds + seconds +
			seconds; !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	t.Log(out.String())
}
