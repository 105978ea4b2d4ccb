package ranks

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/trace"
)

// onEpoch calls do when the line of an epoch is printed.
type onEpoch struct {
	line []byte
	do   func()
}

func (w *onEpoch) Write(b []byte) (int, error) {
	if bytes.Contains(b, w.line) && w.do != nil {
		w.do()
		w.do = nil
	}
	return len(b), nil
}

// A file of the dataset that another process truncates during an epoch ends the run with the exit code of
// read errors and the name of the file, whether parts are fetched or not. The last checkpoint is whole.
func TestTruncatedDuringTraining(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string]bool{"fetched": true, "not fetched": false} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "planted")
			if _, err := generate.Write(data,
				generate.Options{Vertices: 3000, Edges: 20000, Features: 12, Classes: 4, Seed: 5}, false); err != nil {
				t.Fatal(err)
			}
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.Quiet, c.CheckpointEvery = 1, 0, 1000, false, "1e"
			if limited {
				c.Memory, c.ForceMemory = "4GB", true // with less, all of so small a file stays in memory
			}
			out := &onEpoch{line: []byte("epoch=1/"), do: func() { truncateFiles(t, data) }}
			err := Train(context.Background(), c, data, IO{Out: out, Err: out})
			if fault.ExitCode(err) != 74 || !strings.Contains(err.Error(), data) || !strings.Contains(err.Error(), "truncated") {
				t.Errorf("%v", err)
			}
			if s, problems, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir)); err != nil || len(problems) > 0 || s == nil {
				t.Errorf("checkpoint: %v, %v", problems, err)
			}
		})
	}
}

// truncateFiles truncates all large files in a folder to a page.
func truncateFiles(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && info.Mode().IsRegular() && info.Size() > 1<<15 {
			err = os.Truncate(path, 4096)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Every kind of network has the same bits if the parts of files are read ahead of the tasks.
func TestReadAheadChangesNothing(t *testing.T) {
	t.Parallel()
	data := generatedOf(t, 3000, 20000, true)
	for _, kind := range model.Kinds() {
		t.Run(kind, func(t *testing.T) {
			c := quick(t)
			c.Model, c.Ranks, c.Servers, c.Epochs, c.Hidden, c.CacheInput = kind, 2, 0, 2, 8, "off"
			want := train(t, c, data)
			c.Out, c.Memory, c.ForceMemory = filepath.Join(t.TempDir(), "limited"), "4GB", true
			if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
				t.Error("model.safetensors differs")
			}
		})
	}
}

// Intervals run every stage in ascending order, so that files are read in order and ahead of the tasks: the
// timeline has the fetches of every interval.
func TestOrderOfIntervals(t *testing.T) {
	t.Parallel()
	data := generatedOf(t, 3000, 20000, false)
	for _, mode := range []string{"pipe", "nopipe"} {
		t.Run(mode, func(t *testing.T) {
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.Intervals, c.Threads, c.Mode = 1, 0, 2, 0, 7, 1, mode
			c.Memory, c.ForceMemory, c.Trace = "1MB", true, filepath.Join(t.TempDir(), "trace.json")
			if train(t, c, data).Summary.Disk == nil {
				t.Error("the summary has no measurements of the disk")
			}
			f, err := trace.Read(c.Trace)
			if err != nil {
				t.Fatal(err)
			}
			type stage struct {
				task         string
				epoch, layer int
			}
			last, fetched := map[stage]int{}, map[int]bool{}
			for _, e := range f.Events {
				at := stage{e.Task, e.Epoch, e.Layer}
				switch before, ok := last[at]; {
				case e.Interval < 0:
				case e.Task == trace.Fetch:
					fetched[e.Interval] = true
				case ok && e.Interval < before && e.Interval > 0: // a stage of the same name begins with interval 0
					t.Errorf("%v: interval %d after %d", at, e.Interval, before)
					fallthrough
				default:
					last[at] = e.Interval
				}
			}
			if len(fetched) != c.Intervals {
				t.Errorf("fetched intervals: %v", fetched)
			}
		})
	}
}
