package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"siafu/graph/fault"
)

// Event is a task as a file tells it. Start is on rank 0's clock, from the
// beginning of training.
type Event struct {
	Task             string
	Rank, Worker     int
	Epoch            int // 0 before the first
	Layer, Interval  int // None where there is none
	Start, Dur, Wait time.Duration
}

// End is when the task ended.
func (e *Event) End() time.Duration { return e.Start + e.Dur }

// File is a file that was read: events in the order in which they stand there,
// which for each worker is that of time.
type File struct {
	Info      map[string]string
	Processes []Process
	Events    []Event
}

// Read reads a file that Save has written. Faults have kind Missing for one
// that is not there, Data, with the line, for one that is damaged.
func Read(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	f, err := Decode(b)
	if err != nil {
		return nil, fault.New(fault.Data, op, path, "%v", err).Then(`use a whole file that "siafu train --trace" wrote`)
	}
	return f, nil
}

// Decode reads a file's bytes. Its errors name the line.
func Decode(b []byte) (*File, error) {
	d := &decoder{Decoder: json.NewDecoder(bytes.NewReader(b)), text: b, file: &File{}, ranks: map[int]bool{}}
	if err := d.object(); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the file ends too early")
		}
		return nil, fmt.Errorf("line %d: %w", d.line(), err)
	}
	return d.file, nil
}

type decoder struct {
	*json.Decoder
	text  []byte
	file  *File
	ranks map[int]bool // that the file has described
	begin int64        // of the value in hand
}

// line is that of the value in hand.
func (d *decoder) line() int { return 1 + bytes.Count(d.text[:d.begin], []byte("\n")) }

// mark notes where the next value begins.
func (d *decoder) mark() {
	d.begin = d.InputOffset()
	for d.begin < int64(len(d.text)) && strings.IndexByte(" \t\r\n,:", d.text[d.begin]) >= 0 {
		d.begin++
	}
}

// expect reads a bracket.
func (d *decoder) expect(want json.Delim) error {
	d.mark()
	got, err := d.Token()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%v where %v is needed", got, want)
	}
	return nil
}

// object reads the whole file.
func (d *decoder) object() error {
	if err := d.expect('{'); err != nil {
		return err
	}
	found := false
	for d.More() {
		d.mark()
		key, err := d.Token()
		if err != nil {
			return err
		}
		found = found || key == "traceEvents"
		if err := d.member(key); err != nil {
			return err
		}
	}
	if err := d.expect('}'); err != nil {
		return err
	}
	d.mark()
	switch _, err := d.Token(); {
	case err == nil:
		return errors.New("something follows the end")
	case !errors.Is(err, io.EOF):
		return err
	case !found:
		return errors.New(`there is no "traceEvents"`)
	}
	return nil
}

// member reads the value of a key of the file's object.
func (d *decoder) member(key json.Token) error {
	d.mark()
	switch key {
	case "traceEvents":
		return d.events()
	case "otherData":
		return d.Decode(&d.file.Info)
	}
	var skipped json.RawMessage
	return d.Decode(&skipped)
}

func (d *decoder) events() error {
	if err := d.expect('['); err != nil {
		return err
	}
	for d.More() {
		d.mark()
		var e rawEvent
		if err := d.Decode(&e); err != nil {
			return err
		}
		if err := d.take(&e); err != nil {
			return err
		}
	}
	return d.expect(']')
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

// take keeps an event, if it is of a kind that Save writes and that matters.
func (d *decoder) take(e *rawEvent) error {
	switch {
	case e.Phase == "M" && e.Name == "process_name":
		return d.process(e)
	case e.Phase == "X":
		return d.task(e)
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
	Epoch    *int    `json:"epoch"`
	Layer    *int    `json:"layer"`
	Interval *int    `json:"interval"`
	Wait     float64 `json:"wait_us"`
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
		return errors.New("a task without a name")
	case !d.ranks[e.Rank]:
		return fmt.Errorf("task %q is of rank %d, which nothing before it describes", e.Name, e.Rank)
	case e.TS == nil || e.Dur == nil || a.Epoch == nil:
		return fmt.Errorf("task %q lacks its ts, dur or epoch", e.Name)
	case !(math.Abs(*e.TS) <= mostMicros && *e.Dur >= 0 && *e.Dur <= mostMicros && a.Wait >= 0 && a.Wait <= *e.Dur):
		return fmt.Errorf("task %q has ts=%g dur=%g wait_us=%g", e.Name, *e.TS, *e.Dur, a.Wait)
	}
	d.file.Events = append(d.file.Events, Event{
		Task: e.Name, Rank: e.Rank, Worker: e.Worker,
		Epoch: *a.Epoch, Layer: given(a.Layer), Interval: given(a.Interval),
		Start: micros(*e.TS), Dur: micros(*e.Dur), Wait: micros(a.Wait),
	})
	return nil
}

// mostMicros is 30 years, which a time.Duration holds many times over.
const mostMicros = 1e15

func micros(us float64) time.Duration { return time.Duration(math.Round(us * 1e3)) }

func given(x *int) int {
	if x == nil {
		return None
	}
	return *x
}
