package world_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Package worldtest tests sums and Agree without failures, in every world. Here are tests with
// a failing communicator.

// errLink is the error of a broken communicator.
var errLink = errors.New("link down")

// broken fails in one of its collectives.
type broken struct {
	world.Comm
	op string
}

func (b broken) Ialltoallv(s []byte, sc []int, r []byte, rc []int) (world.Request, error) {
	if b.op == "Ialltoallv" {
		return nil, errLink
	}
	return b.Comm.Ialltoallv(s, sc, r, rc)
}

func (b broken) Allgatherv(s, r []byte, counts []int) error {
	if b.op == "Allgatherv" {
		return errLink
	}
	return b.Comm.Allgatherv(s, r, counts)
}

func (b broken) Bcast(buf []byte, root int) error {
	if b.op == "Bcast" {
		return errLink
	}
	return b.Comm.Bcast(buf, root)
}

func TestBrokenCommunicator(t *testing.T) {
	mine := fault.New(fault.Data, "read", "x", "bad")
	for _, k := range []struct {
		name, op string
		call     func(c world.Comm) error
		want     error
	}{
		{"short sum", "Allgatherv", func(c world.Comm) error { return world.SumFloat32s(c, make([]float32, 2)) }, errLink},
		{"long sum, first step", "Ialltoallv", func(c world.Comm) error { return world.SumInt64s(c, make([]int64, 1<<16)) }, errLink},
		{"long sum, second step", "Allgatherv", func(c world.Comm) error { return world.MinInt64s(c, make([]int64, 1<<16)) }, errLink},
		{"Agree on nothing", "Allgatherv", func(c world.Comm) error { return world.Agree(c, nil) }, errLink},
		// The error that a rank already has is the cause of later errors.
		{"Agree on an error", "Allgatherv", func(c world.Comm) error { return world.Agree(c, mine) }, mine},
		{"Agree, second step", "Bcast", func(c world.Comm) error { return world.Agree(c, mine) }, mine},
		{"Gather, lengths", "Allgatherv", func(c world.Comm) error { _, err := world.Gather(c, 0, nil); return err }, errLink},
		{"Gather, blocks", "Ialltoallv", func(c world.Comm) error { _, err := world.Gather(c, 0, nil); return err }, errLink},
		{"BcastBlob", "Bcast", func(c world.Comm) error { _, err := world.BcastBlob(c, nil, 0); return err }, errLink},
	} {
		t.Run(k.name, func(t *testing.T) {
			err := inproc.Run(2, func(c world.Comm) error {
				if err := k.call(broken{c, k.op}); !errors.Is(err, k.want) {
					t.Errorf("got %v, want %v", err, k.want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// In a world of one rank the error is unchanged.
func TestAgreeAlone(t *testing.T) {
	err := inproc.Run(1, func(c world.Comm) error { return world.Agree(c, errLink) })
	if err != errLink {
		t.Errorf("got %v", err)
	}
}

func TestErrorsRead(t *testing.T) {
	cause := fault.New(fault.IO, "write", "x", "full").Then("free disk space")
	for _, k := range []struct {
		err  error
		want string
	}{
		{&world.StallError{Op: "Barrier", Rank: 1, Waited: 1500 * time.Millisecond}, "Barrier: rank 1 has waited 1.5s for an unknown rank"},
		{&world.StallError{Op: "Recv", Rank: 1, Waited: time.Second, Missing: []int{3}}, "Recv: rank 1 has waited 1s for rank 3"},
		{&world.StallError{Op: "Bcast", Rank: 0, Waited: time.Minute, Missing: []int{1, 12}},
			"Bcast: rank 0 has waited 1m0s for ranks 1, 12"},
		{&world.StallError{Op: "Recv", Rank: 1, Waited: time.Second, Missing: []int{3, 4}, Hosts: []string{"n1", "n2"},
			During: "SC of layer 0 in epoch 2"},
			"Recv: rank 1 has waited 1s for ranks 3 on n1, 4 on n2 (SC of layer 0 in epoch 2)"},
		{&world.LostError{Op: "Bcast", Rank: 0, Lost: 2, Cause: cause}, "Bcast: rank 0 lost rank 2: write: x: full; free disk space"},
	} {
		if got := k.err.Error(); got != k.want {
			t.Errorf("got  %s\nwant %s", got, k.want)
		}
		if strings.Contains(k.want, "lost") && fault.KindOf(k.err) != fault.IO {
			t.Error("the consequence does not have the kind of its cause")
		}
	}
}
