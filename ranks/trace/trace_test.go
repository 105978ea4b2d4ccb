package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
	"siafu/internal/testkit/worldtest"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// tasks alternate in a recording. The first has no bytes.
var tasks = []string{"GA", Fetch}

// record adds n tasks of a millisecond each to r, one epoch each.
func record(r *Recorder, n int) {
	for i := range n {
		begin := r.startGo.Add(time.Duration(i) * time.Millisecond)
		at := Place{Epoch: int32(i), Layer: int32(i % 2), Interval: None, Read: int64(i)}
		for _, k := range kernelsOfTask(i) {
			r.AddKernel(k)
		}
		r.Add(tasks[i%2], at, begin, begin.Add(time.Millisecond))
	}
}

// kernelsOfTask returns the kernels of the i-th task: i%3 of them.
func kernelsOfTask(i int) (list []kernels.Chunks) {
	for k := range i % 3 {
		total, longest := time.Duration(100_001*(k+1)), time.Duration(1000*i)
		list = append(list, kernels.Chunks{Count: int32(i + k + 2), Slowest: int32(k), Total: total, Longest: longest})
	}
	return list
}

// saved returns the file of a world in which rank q recorded q tasks more than 2
// in rings of 4.
func saved(t testing.TB, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.json")
	err := inproc.Run(size, func(c world.Comm) error {
		r := NewRecorder(0, 4)
		record(r, 2+c.Rank())
		return Save(c, path, Timeline{
			Info:    map[string]string{"dataset": "a \"graph\""},
			Process: Process{Rank: c.Rank(), Name: "n", Role: "graph", Host: "h"},
			Workers: []*Recorder{r}, Origin: r.startHost,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRoundTrip(t *testing.T) {
	f, err := Read(saved(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	var want File
	want.Info = map[string]string{"dataset": "a \"graph\""}
	for rank := range 4 {
		dropped := max(rank-2, 0)
		want.Processes = append(want.Processes, Process{Rank: rank, Name: "n", Role: "graph", Host: "h", Dropped: int64(dropped)})
		for i := dropped; i < 2+rank; i++ {
			want.Events = append(want.Events, Event{
				Task: tasks[i%2], Rank: rank, Epoch: i, Layer: i % 2, Interval: None, Read: []int{None, i}[i%2],
				Start: time.Duration(i) * time.Millisecond, Dur: time.Millisecond, Kernels: kernelsOfTask(i),
			})
		}
	}
	if d := cmp.Diff(&want, f); d != "" {
		t.Error(d)
	}
}

// Nothing is allocated once every kind of task has been seen, and a rank
// without a timeline has no recorder.
func TestRecordingAllocatesNothing(t *testing.T) {
	for _, r := range []*Recorder{NewRecorder(0, 8), nil} {
		now := time.Now()
		task := func() {
			r.Begin()
			if r != nil {
				r.AddKernel(kernels.Chunks{})
			}
			r.Add("GA", Place{}, now, time.Now())
		}
		task()
		if n := testing.AllocsPerRun(100, task); n != 0 {
			t.Errorf("%v allocations a task", n)
		}
	}
}

// A task has the kernels since it began, and is dropped with the first one that is overwritten. Waits have none.
func TestKernelsOfTasks(t *testing.T) {
	r := NewRecorder(0, 4)
	now := r.startGo
	add := func(n int) {
		for range n {
			r.AddKernel(kernels.Chunks{Count: int32(r.called)})
		}
	}
	add(2) // of no task
	r.Begin()
	add(3)
	r.AddWait("SC", Place{}, now, now)
	add(1)
	r.Add("GA", Place{}, now, now)
	r.Add("AV", Place{}, now, now)
	for _, more := range []int{0, 4*kernelsPerTask - 4, 1} { // which overwrites the first kernel of GA
		add(more)
		got := ""
		r.each(func(task string, e *entry) {
			got += task
			for i := range e.calls {
				got += fmt.Sprint(" ", r.kernel(e.first+int64(i)).Count)
			}
			got += ", "
		})
		want := "SC, GA 2 3 4 5, AV, "
		if more == 1 {
			want = "AV, "
		}
		if got != want || r.dropped() != int64(strings.Count("SC, GA, AV, ", ",")-strings.Count(want, ",")) {
			t.Errorf("after %d more: %q and %d dropped, want %q", more, got, r.dropped(), want)
		}
	}
}

// A task's waits are those of its own time, through every call that blocks.
func TestWatch(t *testing.T) {
	const late = 20 * time.Millisecond
	none := make([]int, 2)
	for name, call := range map[string]func(world.Comm) error{
		"Barrier":    world.Comm.Barrier,
		"Bcast":      func(c world.Comm) error { return c.Bcast(make([]byte, 1), 0) },
		"Allgatherv": func(c world.Comm) error { return c.Allgatherv(nil, nil, none) },
		"Recv":       func(c world.Comm) error { return sendOrReceive(c) },
		"Ialltoallv": func(c world.Comm) error {
			r, err := c.Ialltoallv(nil, none, nil, none)
			return errors.Join(err, r.Wait())
		},
		"Sub": func(c world.Comm) error {
			s, err := c.Sub([]int{1, 0})
			return errors.Join(err, s.Barrier())
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := inproc.Run(2, func(c world.Comm) error {
				if c.Rank() == 0 {
					time.Sleep(late)
					return call(c)
				}
				r := NewRecorder(0, 2)
				w := Watch(c, r)
				r.waited.Store(int64(time.Hour)) // of no task
				r.Begin()
				began := time.Now()
				err := call(w)
				end := time.Now()
				r.Add("SC", Place{}, began, end)
				r.Add("GA", Place{}, end, end.Add(time.Second))
				if e := r.ring[0]; e.wait < int64(late/2) || e.wait > e.dur || r.ring[1].wait != 0 {
					t.Errorf("%+v after a rank that came %v late", r.ring, late)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// sendOrReceive makes rank 1 wait for a message of rank 0.
func sendOrReceive(c world.Comm) error {
	if c.Rank() == 1 {
		_, err := c.Recv(0, 1)
		return err
	}
	r, err := c.Isend(nil, 1, 1)
	return errors.Join(err, r.Wait())
}

// A watched world is a world.
func TestWatchedWorld(t *testing.T) {
	worldtest.Run(t, 3, func(t *testing.T, body func(world.Comm) error) {
		err := inproc.Run(3, func(c world.Comm) error { return body(Watch(c, NewRecorder(0, 1))) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// far is a communicator whose ranks are on hosts of their own, except rank 2.
type far struct{ world.Comm }

func (far) Hosts() []string { return []string{"a", "b", "a", "c"} }

// Clocks that are hours apart are brought together to within half of a round
// trip; a rank on the host of rank 0 has its clock.
func TestMeasure(t *testing.T) {
	skew := []int64{0, 5e12, 0, -7e12}
	err := inproc.Run(4, func(c world.Comm) error {
		began := time.Now()
		now := func() int64 { return time.Now().UnixNano() + skew[c.Rank()] }
		o, err := Measure(far{c}, now)
		if err != nil {
			return err
		}
		apart := max(o.Nanos-skew[c.Rank()], skew[c.Rank()]-o.Nanos)
		if apart > o.Trip/2+1 || o.Trip < 0 || o.Trip > int64(time.Since(began)) || skew[c.Rank()] == 0 && o != (Offset{}) {
			t.Errorf("rank %d: %+v of a clock %d ahead", c.Rank(), o, skew[c.Rank()])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBetter(t *testing.T) {
	for _, tc := range []struct {
		first, last  Offset
		nanos, wrong int64
	}{
		{Offset{}, Offset{}, 0, 0},
		{Offset{100, 10}, Offset{103, 20}, 100, 8},
		{Offset{100, 30}, Offset{90, 20}, 90, 20},
	} {
		if nanos, wrong := Better(tc.first, tc.last); nanos != tc.nanos || wrong != tc.wrong {
			t.Errorf("Better(%v, %v) = %d, %d, want %d, %d", tc.first, tc.last, nanos, wrong, tc.nanos, tc.wrong)
		}
	}
}

// A full file system, or a folder that has gone, fails on rank 0 alone and
// leaves nothing behind.
func TestSaveFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone", "trace.json")
	err := inproc.Run(2, func(c world.Comm) error {
		err := Save(c, path, Timeline{Workers: []*Recorder{NewRecorder(0, 1)}})
		if (err != nil) != (c.Rank() == 0) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// head begins a file whose rank 0 is described; the next line is the third.
const head = "{\"traceEvents\":[\n" + `{"ph":"M","name":"process_name","pid":0,"args":{"role":"graph"}},` + "\n"

func TestDecodeRefuses(t *testing.T) {
	task := func(fields string) string { return head + `{"ph":"X","name":"GA","pid":0,` + fields + "}\n]}" }
	for name, tc := range map[string]struct{ text, says string }{
		"empty":         {"", "line 1: unexpected end"},
		"not JSON":      {"GA 1 2 3", "line 1: invalid character"},
		"an array":      {"[]", "line 1: json: cannot unmarshal array"},
		"no events":     {`{"otherData":{}}`, `"traceEvents" is missing`},
		"events a word": {`{"traceEvents":"none"}`, "line 1: json: cannot unmarshal string"},
		"cut":           {head + `{"ph":"X","name":"GA"`, "line 3: unexpected end"},
		"cut after":     {head + `{"ph":"i"}`, "unexpected end"},
		"more":          {head + `{"ph":"i"}]} {}`, "line 3: invalid character '{' after"},
		"no rank": {strings.Replace(task(`"ts":1,"dur":1,"args":{"epoch":1}`), `"pid":0,"args"`, `"pid":1,"args"`, 1),
			"line 3: task \"GA\" belongs to rank 0, which no earlier"},
		"rank twice":     {head + head[len("{\"traceEvents\":[\n"):] + `{"ph":"i"}]}`, "line 3: rank 0 is described twice"},
		"role":           {strings.Replace(head, "graph", "cook", 1) + `{"ph":"i"}]}`, `line 2: rank 0 has role "cook"`},
		"no time":        {task(`"dur":1,"args":{"epoch":1}`), "line 3: task \"GA\" lacks"},
		"no epoch":       {task(`"dur":1,"ts":1`), "line 3: task \"GA\" lacks"},
		"backwards":      {task(`"ts":1,"dur":-1,"args":{"epoch":1}`), "dur=-1"},
		"long":           {task(`"ts":1,"dur":1e300,"args":{"epoch":1}`), "dur=1e+300"},
		"bytes":          {task(`"ts":1,"dur":1,"args":{"epoch":1,"bytes":-1}`), "read -1 bytes"},
		"wait":           {task(`"ts":1,"dur":1,"args":{"epoch":1,"wait_us":2}`), "wait_us=2"},
		"one chunk":      {task(`"ts":1,"dur":9,"args":{"epoch":1,"kernels":[[2,1,1,0],[1,1,1,0]]}`), "invalid kernel [1 1 1 0]"},
		"long chunk":     {task(`"ts":1,"dur":9,"args":{"epoch":1,"kernels":[[2,1,1.5,0]]}`), "invalid kernel [2 1 1.5 0]"},
		"no chunk":       {task(`"ts":1,"dur":9,"args":{"epoch":1,"kernels":[[2,1,1,2]]}`), "invalid kernel [2 1 1 2]"},
		"long kernels":   {task(`"ts":1,"dur":9,"args":{"epoch":1,"kernels":[[2,5,3,0],[2,4.5,3,0]]}`), "shorter than its kernels"},
		"type":           {task(`"ts":"now","dur":1`), "line 3: json"},
		"type of a part": {task(`"ts":1,"dur":1,"args":{"epoch":1.5}`), `line 3: task "GA": json`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t")
			if err := os.WriteFile(path, []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(path); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); fault.KindOf(err) != fault.Missing {
		t.Error(err)
	}
}

// Events and fields of other programs are ignored.
func TestDecodeSkips(t *testing.T) {
	f, err := Decode([]byte(`{"more":[{"a":1}],` + head[1:] +
		`{"ph":"C","name":"n","pid":9},{"ph":"X","name":"AE","pid":0,"tid":3,"ts":-1.5,"dur":2,"cat":"x","args":{"epoch":1,"interval":4,"x":[]}}],"end":null}`))
	want := Event{Task: "AE", Worker: 3, Epoch: 1, Layer: None, Interval: 4, Read: None, Start: -1500, Dur: 2000}
	if err != nil || !cmp.Equal(f.Events, []Event{want}) {
		t.Errorf("%+v %v", f, err)
	}
}

func FuzzDecode(f *testing.F) {
	whole, err := os.ReadFile(saved(f, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(head + `{"ph":"X","name":"GA","pid":0,"ts":1e15,"dur":1e15,"args":{"epoch":-1}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var file *File
		var err error
		decodertest.Heap(t, int64(len(b)), func() { file, err = Decode(b) })
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("no position: %v", err)
			}
			return
		}
		for _, e := range file.Events {
			if e.Dur < 0 || e.Wait < 0 || e.Wait > e.Dur || e.End() < e.Start || e.Task == "" {
				t.Errorf("%+v", e)
			}
		}
	})
}
