package checkpoint

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"siafu/graph/fault"
)

func TestInterval(t *testing.T) {
	hourAgo := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		text  string
		want  Interval
		due   []int // of epochs 1 to 6, an hour after the last one
		wrong bool
	}{
		{"2e", Interval{Epochs: 2}, []int{2, 4, 6}, false},
		{"1e", Interval{Epochs: 1}, []int{1, 2, 3, 4, 5, 6}, false},
		{"10m", Interval{Time: 10 * time.Minute}, []int{1, 2, 3, 4, 5, 6}, false},
		{"2h", Interval{Time: 2 * time.Hour}, nil, false},
		{"90s", Interval{Time: 90 * time.Second}, []int{1, 2, 3, 4, 5, 6}, false},
		{"0", Interval{}, nil, false},
		{"off", Interval{}, nil, false},
		{text: "", wrong: true}, {text: "20", wrong: true}, {text: "e", wrong: true}, {text: "0e", wrong: true},
		{text: "-1e", wrong: true}, {text: "-5m", wrong: true}, {text: "1.5e", wrong: true}, {text: "often", wrong: true},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := ParseInterval(tc.text)
			if tc.wrong {
				wantFault(t, err, fault.Usage, "--checkpoint-every", "20e")
				return
			}
			if err != nil || got != tc.want {
				t.Fatalf("%+v, %v", got, err)
			}
			if again, err := ParseInterval(got.String()); err != nil || again != got {
				t.Errorf("%q reads %v, %v", got, again, err)
			}
			for epoch, i := 1, 0; epoch <= 6; epoch++ {
				want := i < len(tc.due) && tc.due[i] == epoch
				if want {
					i++
				}
				if got.Due(epoch, hourAgo) != want {
					t.Errorf("epoch %d is due: %t", epoch, !want)
				}
			}
		})
	}
}

func TestSettings(t *testing.T) {
	saved := Settings{"lr": "0.01", "hidden": "16", "model": "gcn"}
	if err := saved.Agree("run", Settings{"lr": "0.01", "hidden": "16", "model": "gcn"}); err != nil {
		t.Error(err)
	}
	err := saved.Agree("run", Settings{"lr": "0.02", "hidden": "16", "heads": "8"})
	wantFault(t, err, fault.Config, "resume: run: ",
		`heads is not set in the checkpoint and "8" now, lr is "0.01" in the checkpoint and "0.02" now, model is "gcn" in the checkpoint and not set now`)
	if err := Settings(nil).Agree("run", nil); err != nil {
		t.Error(err)
	}
}

// metrics.jsonl goes back to the lines that a checkpoint counts, and only if
// they are those lines.
func TestMetrics(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wantText := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	m, err := MarkMetrics(write("one\ntwo\n"))
	if err != nil || m.Bytes != 8 {
		t.Fatal(m, err)
	}
	longer := write("one\ntwo\nthree\nfo")
	if err := m.Restore(longer, longer); err != nil {
		t.Fatal(err)
	}
	wantText(longer, "one\ntwo\n")
	src, dst := write("one\ntwo\nthree\n"), write("other\n")
	if err := m.Restore(src, dst); err != nil {
		t.Fatal(err)
	}
	wantText(src, "one\ntwo\nthree\n")
	wantText(dst, "one\ntwo\n")
	for text, says := range map[string]string{"one\n": "4 bytes", "one\ntwx\nthree\n": "first 8 bytes"} {
		path := write(text)
		wantFault(t, m.Restore(path, path), fault.Data, path, says)
		wantText(path, text)
	}
	wantFault(t, m.Restore(filepath.Join(t.TempDir(), "none"), dst), fault.Missing)
	_, err = MarkMetrics(filepath.Join(t.TempDir(), "none"))
	wantFault(t, err, fault.Missing)
}

// Of two who want a run folder one gets it, and the other hears from whom.
func TestLock(t *testing.T) {
	run := t.TempDir()
	first, err := Acquire(run, 0)
	if err != nil || first.Warning != "" {
		t.Fatal(first, err)
	}
	_, err = Acquire(run, 0)
	me := self()
	wantFault(t, err, fault.Usage, run, "process", strconv.Itoa(me.PID), me.Host, "another --out")

	time.AfterFunc(2*lockPoll, func() { first.Release() })
	second, err := Acquire(run, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	// A lock of a folder that was replaced keeps nobody out of the new one.
	if err := os.Remove(filepath.Join(run, lockFile)); err != nil {
		t.Fatal(err)
	}
	third, err := Acquire(run, 0)
	if err != nil {
		t.Fatal(err)
	}
	if path := filepath.Join(run, lockFile); second.current(path) || !third.current(path) {
		t.Error("the lock of a file that is gone counts")
	}
	for _, l := range []*Lock{second, third} {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	_, err = Acquire(filepath.Join(run, "none"), 0)
	wantFault(t, err, fault.Missing)
}

// A full disk keeps nobody from locking, as a run needs to free some space.
func TestLockOnFullDisk(t *testing.T) {
	dir := tinyDisk(t, "16k")
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 64<<10), 0o644); err == nil {
		t.Fatal("the disk is not full")
	}
	first, err := Acquire(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	_, err = Acquire(dir, 0)
	wantFault(t, err, fault.Usage, "another process writes it")
}
