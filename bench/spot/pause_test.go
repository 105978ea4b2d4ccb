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
	"siafu/internal/host/hosttest"
)

// The part pause has a line for each way to continue, on this host and on hosts of namespaces.
func TestPause(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("ten trainings with losses; set SIAFU_BIG=1")
	}
	siafu, _ := hosttest.Programs(t)
	t.Setenv("PATH", filepath.Dir(siafu)+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, local := range []bool{true, false} {
		var out bytes.Buffer
		o := Options{Runs: 1, Zones: 1, Seed: 3, Only: []string{"pause"}, PauseOptions: PauseOptions{Losses: 1, Ranks: 3, Epochs: 16, Rate: "1gbit", Local: local}}
		if err := o.Run(t.Context(), &out); err != nil {
			if !local && fault.KindOf(err) == fault.Missing {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{`--survive 1 [\d.]+ .* [012]\.00 \(\S+ to \S+\) 0 `, `every epoch 1 [\d.]+ .* [012]\.00 \(`, `defaults 1 [\d.]+ .* [4-9]\.00 \(`, `relative to that without --survive: \d\.\d+`} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("local=%t: no %q in\n%s", local, want, out.String())
			}
		}
		t.Log(out.String())
	}
}
