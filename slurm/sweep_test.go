package slurm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// Lists of values and their combinations, the last axis first.
func TestGrid(t *testing.T) {
	for _, tc := range []struct {
		axes []string
		want string // "error" is one
	}{
		{nil, ""},
		{[]string{"--seed=1..3"}, "seed=1|seed=2|seed=3"},
		{[]string{"seed=1,7..8", "codec=none,auto:int8"},
			"seed=1 codec=none|seed=1 codec=auto:int8|seed=7 codec=none|seed=7 codec=auto:int8|seed=8 codec=none|seed=8 codec=auto:int8"},
		{[]string{"seed=08..09"}, "seed=8|seed=9"},
		{[]string{"seed=3..1"}, "error"},
		{[]string{"seed=0..10000"}, "error"},
		{[]string{"seed=1..99999999999999999999999"}, "seed=1..99999999999999999999999"}, // no whole number of ours: train says so
		{[]string{"seed=0..999", "lr=1,2,3,4,5,6,7,8,9,10,11"}, "error"},
		{[]string{"out=$(x)"}, "error"},
		{[]string{"partitioner=file:/a"}, "error"},
		{[]string{"=1"}, "error"},
		{[]string{"seed=1,,2"}, "error"},
	} {
		var axes []Axis
		var err error
		for _, text := range tc.axes {
			flag, values, _ := strings.Cut(text, "=")
			a, problem := NewAxis("test", flag, values)
			axes, err = append(axes, a), errors.Join(err, problem)
		}
		var got []string
		if err == nil {
			var grid []Setting
			grid, err = Grid("test", axes)
			for _, s := range grid {
				got = append(got, s.String())
			}
		}
		if (err != nil) != (tc.want == "error") || err == nil && strings.Join(got, "|") != tc.want {
			t.Errorf("%q: %q %v, want %q", tc.axes, got, err, tc.want)
		}
	}
}

// shell returns a sweep of three shell commands, by their number.
func shell(t *testing.T, commands map[string]string) (*Sweep, *bytes.Buffer) {
	var heard bytes.Buffer
	a, err := NewAxis("test", "k", "1..3")
	if err != nil {
		t.Fatal(err)
	}
	grid, err := Grid("test", []Axis{a})
	if err != nil {
		t.Fatal(err)
	}
	return &Sweep{Settings: grid, Dir: t.TempDir(), Out: &heard, Err: &heard,
		Check: func(s Setting) error {
			if commands[s.String()] == "" {
				return fault.New(fault.Usage, "test", "", "no command")
			}
			return nil
		},
		Command: func(s Setting, out string) []string {
			return []string{"/bin/sh", "-c", commands[s.String()], "sh", out}
		},
	}, &heard
}

// A training that fails, by its flags or its exit code, does not stop the others. The report
// contains its last line.
func TestSweepFailures(t *testing.T) {
	s, heard := shell(t, map[string]string{"k=1": `echo one >&2; echo "siafu: two" >&2; exit 76`, "k=3": `echo $1 > $1`})
	failed, err := s.Run(t.Context())
	if err != nil || len(failed) != 2 || failed[0].Kind != fault.Diverged || failed[0].Detail != "two" || failed[1].Kind != fault.Usage {
		t.Errorf("%+v %v", failed, err)
	}
	if _, err := os.Stat(s.Dir + "/k=3"); err != nil {
		t.Errorf("%v\n%s", err, heard)
	}
	if s, _ := shell(t, nil); true {
		if _, err := s.Run(t.Context()); fault.KindOf(err) != fault.Usage {
			t.Errorf("all of them wrong: %v", err)
		}
	}
}

// A stopped sweep sends SIGTERM to the current training, waits for it, and starts no other.
func TestSweepStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s, heard := shell(t, map[string]string{"k=1": `trap 'sleep 0.3; echo saved >&2; exit 75' TERM; echo ready >&2; while :; do sleep ` +
		`0.05; done`, "k=2": "echo no >&2", "k=3": "echo no >&2"})
	s.Err = writer(func(b []byte) {
		heard.Write(b)
		if bytes.Contains(b, []byte("ready")) {
			stop()
		}
	})
	failed, err := s.Run(ctx)
	if fault.KindOf(err) != fault.Stopped || len(failed) != 0 || !strings.Contains(heard.String(), "saved") ||
		strings.Contains(heard.String(), "no\n") {
		t.Errorf("%v %v\n%s", failed, err, heard)
	}
}

// writer is a function that is written to.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
