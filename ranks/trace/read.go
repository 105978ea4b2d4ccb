package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"siafu/internal/fault"
	"siafu/kernels"
)

// Event is a task in a file. Start is on rank 0's clock, since the start of training.
type Event struct {
	Task             string
	Rank, Worker     int
	Epoch            int // 0: before the first epoch
	Layer, Interval  int // None if the task has none
	Read             int // bytes of files that a Fetch read; None: another task, or a wait for another Fetch
	Start, Dur, Wait time.Duration
	Kernels          []kernels.Chunks
}

// End returns the end of the task.
func (e *Event) End() time.Duration { return e.Start + e.Dur }

// File is the content of a file. The events of each worker are in the order of time.
type File struct {
	Info      map[string]string
	Processes []Process
	Events    []Event
}

// Read reads a file written by Save. The kind of a fault is Missing for a missing file and Data
// for a damaged file; its text names the line.
func Read(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	f, err := Decode(b)
	if err != nil {
		return nil, fault.New(fault.Data, op, path, "%v", err).Then(`use a complete file from "siafu train --trace"`)
	}
	return f, nil
}

// Decode reads a file's bytes. Its errors name the line.
func Decode(b []byte) (*File, error) {
	var f struct {
		Info   map[string]string `json:"otherData"`
		Events []json.RawMessage `json:"traceEvents"`
	}
	line := func(at int64) int { return 1 + bytes.Count(b[:at], []byte("\n")) }
	if err := json.Unmarshal(b, &f); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		at := int64(0)
		if errors.As(err, &syntax) {
			at = syntax.Offset
		} else if errors.As(err, &kind) {
			at = kind.Offset
		}
		return nil, fmt.Errorf("line %d: %w", line(at), err)
	}
	if f.Events == nil {
		return nil, fmt.Errorf(`line %d: "traceEvents" is missing`, line(int64(len(b))))
	}
	d := &decoder{file: &File{Info: f.Info}, ranks: map[int]bool{}}
	at := max(bytes.Index(b, []byte(`"traceEvents"`)), 0) // the key may be escaped
	for _, text := range f.Events {
		at += bytes.Index(b[at:], text)
		if err := d.take(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", line(int64(at)), err)
		}
		at += len(text)
	}
	return d.file, nil
}

type decoder struct {
	file  *File
	ranks map[int]bool // ranks with a description so far
}

// rawEvent is an event of any phase.
type rawEvent struct {
	Phase  string          `json:"ph"`
	Name   string          `json:"name"`
	Rank   int             `json:"pid"`
	Worker int             `json:"tid"`
	TS     *float64        `json:"ts"`
	Dur    *float64        `json:"dur"`
	Args   json.RawMessage `json:"args"`
}

// take stores a task or the description of a process. It ignores other events.
func (d *decoder) take(text []byte) error {
	var e rawEvent
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	switch {
	case e.Phase == "M" && e.Name == "process_name":
		return d.process(&e)
	case e.Phase == "X":
		return d.task(&e)
	}
	return nil
}

func (d *decoder) process(e *rawEvent) error {
	p := Process{Rank: e.Rank}
	if err := json.Unmarshal(e.Args, &p); err != nil {
		return fmt.Errorf("rank %d: %w", e.Rank, err)
	}
	if d.ranks[e.Rank] {
		return fmt.Errorf("rank %d is described twice", e.Rank)
	}
	if p.Role != "graph" && p.Role != "server" {
		return fmt.Errorf("rank %d has role %q, which is neither graph nor server", e.Rank, p.Role)
	}
	d.ranks[e.Rank] = true
	d.file.Processes = append(d.file.Processes, p)
	return nil
}

// rawArgs are the arguments of a task.
type rawArgs struct {
	Epoch    *int         `json:"epoch"`
	Layer    *int         `json:"layer"`
	Interval *int         `json:"interval"`
	Read     *int         `json:"bytes"`
	Wait     float64      `json:"wait_us"`
	Kernels  [][4]float64 `json:"kernels"`
}

func (d *decoder) task(e *rawEvent) error {
	var a rawArgs
	if len(e.Args) > 0 {
		if err := json.Unmarshal(e.Args, &a); err != nil {
			return fmt.Errorf("task %q: %w", e.Name, err)
		}
	}
	switch {
	case e.Name == "":
		return errors.New("a task has no name")
	case !d.ranks[e.Rank]:
		return fmt.Errorf("task %q belongs to rank %d, which no earlier event describes", e.Name, e.Rank)
	case e.TS == nil || e.Dur == nil || a.Epoch == nil:
		return fmt.Errorf("task %q lacks its ts, dur or epoch", e.Name)
	case !(math.Abs(*e.TS) <= mostMicros && *e.Dur >= 0 && *e.Dur <= mostMicros && a.Wait >= 0 && a.Wait <= *e.Dur):
		return fmt.Errorf("task %q has invalid times ts=%g dur=%g wait_us=%g", e.Name, *e.TS, *e.Dur, a.Wait)
	case a.Read != nil && *a.Read < 0:
		return fmt.Errorf("task %q has read %d bytes", e.Name, *a.Read)
	}
	calls, err := kernelsOf(a.Kernels, micros(*e.Dur))
	if err != nil {
		return fmt.Errorf("task %q %w", e.Name, err)
	}
	d.file.Events = append(d.file.Events, Event{
		Task: e.Name, Rank: e.Rank, Worker: e.Worker,
		Epoch: *a.Epoch, Layer: given(a.Layer), Interval: given(a.Interval), Read: given(a.Read),
		Start: micros(*e.TS), Dur: micros(*e.Dur), Wait: micros(a.Wait),
		Kernels: calls,
	})
	return nil
}

// kernelsOf returns the kernels of a task that takes the time dur.
func kernelsOf(raw [][4]float64, dur time.Duration) (list []kernels.Chunks, err error) {
	for _, k := range raw {
		dur -= micros(k[1])
		if !(k[0] >= 2 && k[0] <= math.MaxInt32 && k[3] >= 0 && k[3] < k[0] && k[2] >= 0 && k[2] <= k[1] && k[1] <= mostMicros &&
			dur >= 0) {
			return nil, fmt.Errorf("has an invalid kernel %g, or is shorter than its kernels", k)
		}
		list = append(list, kernels.Chunks{Count: int32(k[0]), Slowest: int32(k[3]), Total: micros(k[1]), Longest: micros(k[2])})
	}
	return list, nil
}

// mostMicros is 30 years in microseconds, far below the limit of time.Duration.
const mostMicros = 1e15

func micros(us float64) time.Duration { return time.Duration(math.Round(us * 1e3)) }

func given(x *int) int {
	if x == nil {
		return None
	}
	return *x
}
