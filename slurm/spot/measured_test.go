package spot

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
)

// folder writes a run folder of three ranks with epochs of 2 s, of which some end later, and a log.
func folder(t *testing.T, log string, late map[int]float64) string {
	t.Helper()
	dir, at := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var epochs strings.Builder
	for epoch := 1; epoch <= 10; epoch++ {
		at = at.Add(time.Duration((2.5 + late[epoch]) * float64(time.Second))) // 0.5 s of evaluation
		fmt.Fprintf(&epochs, `{"epoch":%d,"seconds":2,"eval_seconds":0.5,"time":%q}`+"\n", epoch, at.Format(time.RFC3339Nano))
	}
	for name, text := range map[string]string{
		"summary.json": `{"ranks": 3, "servers": 1, "parts": 5, "per_rank": [{"role": "graph", "part": 0}, {"role": "graph", "rank": 1, ` +
			`"part": 1}, {"role": "server"}]}`, "config.toml": "", "metrics.jsonl": epochs.String(), "log.txt": log,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The lost time of a run is the delay of the epochs after its losses and restarts, less half an epoch. A rank
// that joins, and one that takes over the run folder, are neither.
func TestMeasure(t *testing.T) {
	log := "siafu version=1\nview number=1 carriers=[0 0] after_epoch=3 lost=1 joined=0\nresume epoch=3 " +
		"from=the memory of a rank\nresume " +
		"epoch=5 from=run/checkpoints/epoch-000005\n" +
		"view number=1 carriers=[0 0] after_epoch=7 lost=1 joined=0\nview number=2 carriers=[0 0] after_epoch=7 lost=2 joined=0\n" +
		"view number=3 carriers=[0 0] after_epoch=8 lost=2 joined=1\nview number=4 carriers=[0 0] after_epoch=12 lost=3 joined=1\n"
	dir := folder(t, log, map[int]float64{4: 3, 6: 13, 8: 6})
	m, err := Measure(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Survived: 3 s for one loss and 6 s for two, each less 1 s. Restarted: 13 s, less 1 s.
	want := Measured{dir, 2, 5, 2, Lost{3, 2}, Lost{1, 12}}
	if m.Run != want.Run || m.Ranks != want.Ranks || m.Parts != want.Parts || m.Epoch != 2 ||
		m.Survived.Events != 3 || m.Restarted.Events != 1 ||
		math.Abs(m.Survived.Seconds-2) > 1e-9 || math.Abs(m.Restarted.Seconds-12) > 1e-9 {
		t.Errorf("%+v, want %+v", *m, want)
	}
	in, _, err := SimulateOptions{Network: "bert", Run: dir}.inputs()
	if err != nil || in.Pause != m.Survived.Seconds || in.Restart != m.Restarted.Seconds || in.Machines() != 2 ||
		in.Iteration != 2 || in.Parts != 3 {
		t.Errorf("%v %+v", err, in)
	}
	var out bytes.Buffer
	o := SimulateOptions{Network: "bert", Run: dir, Rate: 0.3, Hours: 2, Runs: 2, Zones: 1, Seed: 1}
	if err := o.Print(&out); err != nil || !strings.Contains(out.String(), "survived losses 3, 2 s each; restarts 1, 12 s each") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// Without losses, the inputs of the network remain, and the pause is an epoch.
func TestMeasureWithoutLosses(t *testing.T) {
	dir := folder(t, "siafu version=1\n", nil)
	in, m, err := SimulateOptions{Network: "bert", Run: dir}.inputs()
	if err != nil || in.Pause != 2 || in.Restart != 30 || m.Survived.Events+m.Restarted.Events != 0 {
		t.Errorf("%v %+v %+v", err, in, m)
	}
	if err := os.Remove(filepath.Join(dir, "log.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(dir); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "log.txt") {
		t.Error(err)
	}
}

// Copies of state slow siafu-copies down, and no other system.
func TestCopies(t *testing.T) {
	in, err := Named("bert")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Systems() {
		random := Random{Rate: 0, Zones: 3, Hours: 5, Seed: 1, Runs: 1}
		without := Repeat(in, e, random).Throughput
		slower := in
		slower.Copies = 0.25
		factor := 1.0
		if e.Name == "siafu-copies" {
			factor = 1.25
		}
		// Machines join at the end of an iteration, which is another time: up to 1e-4 of the samples.
		if with := Repeat(slower, e, random).Throughput; math.Abs(with*factor-without) > 1e-4*without {
			t.Errorf("%s: %g samples/s with copies, %g without", e.Name, with, without)
		}
	}
}
