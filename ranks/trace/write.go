package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/ranks/world"
)

const op = "trace"

// Process is the description of a rank in a file.
type Process struct {
	Rank         int             `json:"-"`
	Name         string          `json:"name"`
	Role         string          `json:"role"` // "graph" or "server"
	Host         string          `json:"host"`
	Dropped      int64           `json:"dropped"`           // older tasks that are not in the file
	ClockErrorUS float64         `json:"clock_error_us"`    // maximal error of times relative to rank 0's clock
	Outline      json.RawMessage `json:"outline,omitempty"` // engine.Outline of a graph rank's epochs
}

// Check returns a fault if a timeline cannot be written to path: a file exists that is not a
// timeline of siafu, or the folder is not writable. It changes nothing.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fault.New(fault.Config, op, path, "it is not a regular file").Then("give --trace the name of a new file")
	}
	if err := inventory.Overwrite(op, path, isTimeline); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	for absent(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	f, err := durable.Create(op, filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return err
	}
	f.Abort()
	return nil
}

// Prepare creates the folder of a timeline.
func Prepare(path string) error {
	return durable.MkdirAll(op, filepath.Dir(path))
}

func absent(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// IsTimeline reports whether a file is a timeline that siafu has written.
func IsTimeline(path string) bool { return isTimeline(inventory.Head(path)) }

func isTimeline(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"otherData":{`)) && bytes.Contains(head, []byte(`"program":"siafu `))
}

// Timeline has a rank's input of Save.
type Timeline struct {
	Info    map[string]string // description of the run; rank 0's is used
	Process Process           // Save sets Dropped and ClockErrorUS
	Workers []*Recorder
	Counts  []Count
	Origin  int64  // the nanosecond of rank 0's clock that is time 0 in the file
	First   Offset // measured before training
}

// Count is the value of a named counter at a time.
type Count struct {
	Name string
	At   time.Time
	N    int
}

// Save gathers the timelines of all ranks, and rank 0 writes the file atomically. Collective. Only
// rank 0 returns a fault of the file.
func Save(c world.Comm, path string, t Timeline) error {
	last, err := Measure(c, t.Workers[0].Now)
	if err != nil {
		return err
	}
	shift, wrong := Better(t.First, last)
	t.Process.ClockErrorUS = float64(wrong) / 1e3
	blocks, err := world.Gather(c, 0, t.encode(shift))
	if err != nil || c.Rank() != 0 {
		return err
	}
	return durable.Write(op, path, func(w io.Writer) error { return writeTo(w, t.Info, blocks) })
}

// encode returns the events of a rank in the format of the file, separated by commas.
func (t *Timeline) encode(shift int64) []byte {
	p := t.Process
	for _, w := range t.Workers {
		p.Dropped += w.dropped()
	}
	labels := p.Host
	if p.Dropped > 0 {
		labels += ", " + strconv.FormatInt(p.Dropped, 10) + " older tasks dropped"
	}
	var b []byte
	b = appendMeta(b, "process_name", p.Rank, 0, p)
	b = appendMeta(append(b, ",\n"...), "process_labels", p.Rank, 0, map[string]string{"labels": labels})
	b = appendMeta(append(b, ",\n"...), "process_sort_index", p.Rank, 0, map[string]int{"sort_index": p.Rank})
	for _, w := range t.Workers {
		name := map[string]string{"name": w.thread}
		b = appendMeta(append(b, ",\n"...), "thread_name", p.Rank, w.worker, name)
		w.each(func(task string, e *entry) {
			b = e.append(append(b, ",\n"...), task, p.Rank, w, shift+t.Origin)
		})
	}
	for _, c := range t.Counts {
		b = c.append(append(b, ",\n"...), p.Rank, t.Workers[0].stamp(c.At)-shift-t.Origin)
	}
	return b
}

// append appends the count as an event at a time in nanoseconds.
func (c *Count) append(b []byte, rank int, at int64) []byte {
	b = append(b, `{"ph":"C","name":`...)
	b = strconv.AppendQuote(b, c.Name)
	b = appendInt(b, `,"pid":`, int64(rank))
	b = appendMicros(b, `,"ts":`, at)
	b = appendInt(b, `,"args":{"n":`, int64(c.N))
	return append(b, "}}"...)
}

// appendMeta appends an event that describes a process or thread.
func appendMeta(b []byte, name string, rank, worker int, args any) []byte {
	line, _ := json.Marshal(struct {
		Phase  string `json:"ph"`
		Name   string `json:"name"`
		Rank   int    `json:"pid"`
		Worker int    `json:"tid"`
		Args   any    `json:"args"`
	}{"M", name, rank, worker, args})
	return append(b, line...)
}

// append appends a task of the given kind as an event. zero is the nanosecond of this rank's clock
// that is time 0 in the file.
func (e *entry) append(b []byte, task string, rank int, r *Recorder, zero int64) []byte {
	b = append(b, `{"ph":"X","name":`...)
	b = strconv.AppendQuote(b, task)
	b = appendInt(b, `,"pid":`, int64(rank))
	b = appendInt(b, `,"tid":`, int64(r.worker))
	b = appendMicros(b, `,"ts":`, e.start-zero)
	b = appendMicros(b, `,"dur":`, e.dur)
	b = appendInt(b, `,"args":{"epoch":`, int64(e.at.Epoch))
	if e.at.Layer != None {
		b = appendInt(b, `,"layer":`, int64(e.at.Layer))
	}
	if e.at.Interval != None {
		b = appendInt(b, `,"interval":`, int64(e.at.Interval))
	}
	if task == Fetch && e.at.Read != None {
		b = appendInt(b, `,"bytes":`, e.at.Read)
	}
	b = appendMicros(b, `,"wait_us":`, e.wait)
	for i := range int64(e.calls) {
		k, separator := r.kernel(e.first+i), `,"kernels":[`
		if i > 0 { // the list goes on
			b, separator = b[:len(b)-1], ","
		}
		b = fmt.Appendf(b, "%s[%d,%.3f,%.3f,%d]]", separator, k.Count, float64(k.Total)/1e3, float64(k.Longest)/1e3, k.Slowest)
	}
	return append(b, "}}"...)
}

func appendInt(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

// appendMicros appends nanoseconds as microseconds with three decimals.
func appendMicros(b []byte, key string, nanos int64) []byte {
	b = append(b, key...)
	if nanos < 0 {
		b, nanos = append(b, '-'), -nanos
	}
	b = strconv.AppendInt(b, nanos/1000, 10)
	rest := nanos % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

func writeTo(w io.Writer, info map[string]string, blocks [][]byte) error {
	head, _ := json.Marshal(info)
	parts := [][]byte{[]byte(`{"otherData":`), head, []byte(`,"displayTimeUnit":"ms","traceEvents":[` + "\n")}
	for i, b := range blocks {
		if i > 0 {
			parts = append(parts, []byte(",\n"))
		}
		parts = append(parts, b)
	}
	for _, p := range append(parts, []byte("\n]}\n")) {
		if _, err := io.Copy(w, bytes.NewReader(p)); err != nil {
			return err
		}
	}
	return nil
}
