package bench

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/ranks/config"
	"siafu/ranks/trace"
)

// drawn returns the timeline of two graph ranks and a server, in seconds: task, epoch, begin,
// end and wait.
//
//	rank 0   WU SC----GA---SC ∇AV .   in epoch 2, SC sent at 11, asked at 14
//	rank 1   WU GA-SC------GA-SC ∇AV  sent at 13, asked at 15
func drawn() *trace.File {
	f := &trace.File{Info: map[string]string{"dataset": "drawn"}}
	for rank, role := range []string{"graph", "graph", "server"} {
		f.Processes = append(f.Processes, trace.Process{Rank: rank, Role: role})
	}
	add := func(rank int, task string, epoch int, begin, end, wait time.Duration) {
		f.Events = append(f.Events, trace.Event{
			Task: task, Rank: rank, Epoch: epoch, Layer: trace.None, Interval: trace.None,
			Start: begin * time.Second, Dur: (end - begin) * time.Second, Wait: wait * time.Second,
		})
	}
	for rank := range 2 {
		add(rank, "WU", 1, 0, 2, 0)
		add(rank, "∇AV", 1, 2, 9, 0)
	}
	add(0, "WU", 2, 9, 10, 1)
	add(0, "SC", 2, 10, 11, 0)
	add(0, "GA", 2, 11, 14, 0)
	add(0, "SC", 2, 14, 16, 1)
	add(0, "∇AV", 2, 16, 17, 0)
	add(0, "WU", 3, 19, 20, 0) // between tasks from 17 to 19; epoch 3 is not whole

	add(1, "WU", 2, 9, 10, 0)
	add(1, "GA", 2, 10, 12, 0)
	add(1, "SC", 2, 12, 13, 0)
	add(1, "GA", 2, 13, 15, 0)
	add(1, "SC", 2, 15, 16, 0)
	add(1, "∇AV", 2, 16, 19, 0)
	add(1, "WU", 3, 19, 20, 0)

	add(2, "WU", 1, 1, 2, 0)
	add(2, "WU", 2, 17, 18, 0)
	return f
}

func TestBreakdownOfSyntheticTimeline(t *testing.T) {
	b, err := newBreakdown(drawn(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.epochs, []int{2}) || !b.first || !slices.Equal(b.tasks, []string{"GA", "SC", "∇AV", "WU"}) {
		t.Errorf("epochs %v, first left out %t, tasks %v", b.epochs, b.first, b.tasks)
	}
	zero, one, server := b.graph[0], b.graph[1], b.servers[0]
	for _, tc := range []struct {
		what      string
		got, want float64
	}{
		{"span 0", zero.span, 10}, {"span 1", one.span, 10}, {"server's span", server.span, 10},
		{"SC 0", zero.tasks["SC"].seconds, 3}, {"SC 0 waiting", zero.tasks["SC"].waited, 1},
		{"SC 1", one.tasks["SC"].seconds, 2}, {"WU 0 waiting", zero.tasks["WU"].waited, 1},
		{"between 0", zero.between(), 2}, {"between 1", one.between(), 0}, {"between server", server.between(), 9},
		{"hidden 0", zero.hidden["SC"].least, 2}, {"hidden 0 at most", zero.hidden["SC"].most, 3},
		{"hidden 1", one.hidden["SC"].least, 0}, {"hidden 1 at most", one.hidden["SC"].most, 2},
	} {
		if math.Abs(tc.got-tc.want) > 1e-9 {
			t.Errorf("%s: %v s, want %v", tc.what, tc.got, tc.want)
		}
	}
	var out strings.Builder
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"drawn, 3 ranks (1 servers)", "1 epochs, the first left out", "SC  2.500000   25.0 %",
		"epoch  10.000000  100.0 %", "WU on servers   1.000000   10.0 %",
		"2.500000       0.500000  1.000000  2.500000        28.6 %", // hidden 1 of 1 + 2.5
		"0 graph", "6.000000  2.000000       2.000000  40.0 %",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("the tables lack %q:\n%s", want, &out)
		}
	}
}

// Two workers have twice the time of one.
func TestBreakdownOfTwoWorkers(t *testing.T) {
	f := drawn()
	for _, e := range drawn().Events {
		if e.Rank == 0 && e.Task == "GA" {
			e.Worker = 1
			f.Events = append(f.Events, e)
		}
	}
	b, err := newBreakdown(f, "")
	if err != nil {
		t.Fatal(err)
	}
	r := b.graph[0]
	if r.span != 10 || r.workerTime() != 20 || r.tasks["GA"].seconds != 6 || r.between() != 20-8-3 ||
		r.hidden["SC"] != (overlapBounds{4, 6}) {
		t.Errorf("%+v", r)
	}
}

// An epoch whose first tasks were dropped does not count.
func TestBreakdownWithoutDroppedEpoch(t *testing.T) {
	f := drawn()
	f.Processes[1].Dropped = 5
	b, err := newBreakdown(f, "")
	if err != nil || !slices.Equal(b.epochs, []int{2}) || b.first {
		t.Errorf("%+v %v", b, err)
	}
	f.Events = slices.DeleteFunc(f.Events, func(e trace.Event) bool { return e.Epoch == 1 })
	if _, err := newBreakdown(f, "file"); fault.KindOf(err) != fault.Data {
		t.Errorf("%v", err)
	}
}

// Training and reading the timeline of the same run print the same; communication is hidden
// only with overlap.
func TestBreakdown(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "trace.json")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 3000}, false); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"pipe", "nopipe"} {
		t.Run(mode, func(t *testing.T) {
			o := BreakdownOptions{Data: data, Config: config.Defaults()}
			o.Config.Ranks, o.Config.Epochs, o.Config.Mode, o.Config.Trace = 3, 4, mode, file
			var trained, read strings.Builder
			if err := o.Run(context.Background(), &trained); err != nil {
				t.Fatal(err)
			}
			if err := (BreakdownOptions{From: file}).Run(context.Background(), &read); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(trained.String(), read.String()) || !strings.Contains(read.String(), "3 epochs, the first left out") {
				t.Errorf("%s\n%s", &trained, &read)
			}
			f, err := trace.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			b, err := newBreakdown(f, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range communication {
				most := b.mean(b.graph, func(r *rankTime) float64 { return r.hidden[task].most })
				if (most > 0) != (mode == "pipe") {
					t.Errorf("%v s of %s hidden", most, task)
				}
			}
		})
	}
}

// Under a launcher, train must make the timeline.
func TestBreakdownUnderLauncher(t *testing.T) {
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "2")
	err := BreakdownOptions{Data: "d"}.Run(context.Background(), io.Discard)
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "mpirun") {
		t.Errorf("%v", err)
	}
}

func TestBreakdownRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(`{"traceEvents":[]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		o    BreakdownOptions
		kind fault.Kind
	}{
		"neither": {BreakdownOptions{}, fault.Usage},
		"both":    {BreakdownOptions{Data: dir, From: file}, fault.Usage},
		"missing": {BreakdownOptions{From: filepath.Join(dir, "none")}, fault.Missing},
		"empty":   {BreakdownOptions{From: file}, fault.Data},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.o.Run(context.Background(), io.Discard); fault.KindOf(err) != tc.kind {
				t.Errorf("%v", err)
			}
		})
	}
}
