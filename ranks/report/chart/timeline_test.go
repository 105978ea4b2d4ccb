package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/trace"
)

// A timeline is well-formed and has a box for each task of its epochs, none for
// others.
func TestTimeline(t *testing.T) {
	f := &trace.File{
		Processes: []trace.Process{{Rank: 0, Role: "graph"}, {Rank: 1, Role: "server"}},
		Events: []trace.Event{
			{Task: "GA", Rank: 0, Epoch: 3, Start: time.Millisecond, Dur: time.Millisecond},
			{Task: "∇SC", Rank: 0, Epoch: 4, Start: 2 * time.Millisecond, Dur: time.Millisecond},
			{Task: "WU", Rank: 1, Epoch: 5, Start: 9 * time.Millisecond, Dur: time.Millisecond},
		},
	}
	var out strings.Builder
	if err := Timeline(&out, f, 3, 4); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "<title>"); n != 2 || !strings.Contains(out.String(), "rank 1 server") {
		t.Errorf("%d boxes:\n%s", n, &out)
	}
	if err := Timeline(io.Discard, f, 7, 8); fault.KindOf(err) != fault.Usage {
		t.Errorf("no epoch: %v", err)
	}
}
