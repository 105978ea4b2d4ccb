package slow_test

import (
	"strconv"
	"testing"
	"time"

	"siafu/internal/testkit/worldtest"
	"siafu/internal/testkit/worldtest/slow"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// run starts ranks on hosts of a network.
func run(t *testing.T, n *slow.Network, hosts []string, body func(c world.Comm) error) {
	t.Helper()
	err := inproc.Run(len(hosts), func(c world.Comm) error {
		s, err := n.Comm(c, hosts)
		if err != nil {
			return err
		}
		return body(s)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A slow world is a world.
func TestConformance(t *testing.T) {
	for _, size := range []int{1, 3, 4} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel() // most of it waits
			worldtest.Run(t, size, func(t *testing.T, body func(c world.Comm) error) {
				run(t, slow.NewNetwork(1e9, 100*time.Microsecond), []string{"a", "a", "b", "c"}[:size], body)
			})
		})
	}
}

const (
	rate    = 20e6
	latency = 2 * time.Millisecond
	length  = 200_000
)

// pairs sends a block from each rank of the first host to each of the second.
func pairs(c world.Comm) error {
	there, nothing := []int{0, 0, length, length}, make([]int, 4)
	out, in := there, nothing
	if c.Rank() > 1 {
		out, in = nothing, []int{length, length, 0, 0}
	}
	buf := make([]byte, 2*length)
	r, err := c.Ialltoallv(buf[:world.Offsets(out)[4]], out, buf[:world.Offsets(in)[4]], in)
	if err != nil {
		return err
	}
	return r.Wait()
}

// message sends one block and receives it.
func message(from, to int) func(c world.Comm) error {
	return func(c world.Comm) error {
		if c.Rank() == from {
			if _, err := c.Isend(make([]byte, length), to, 1); err != nil {
				return err
			}
		}
		if c.Rank() == to {
			_, err := c.Recv(from, 1)
			return err
		}
		return nil
	}
}

// Messages take time in proportion to their bytes, and ranks of a host share its link. Messages
// within a host take no time.
func TestRate(t *testing.T) {
	for _, k := range []struct {
		name string
		sent float64 // bytes that leave the busiest host
		do   func(c world.Comm) error
	}{
		{"message", length, message(1, 2)},
		{"message within a host", 0, message(0, 1)},
		{"Ialltoallv", 4 * length, pairs},
		{"Bcast", 2 * length, func(c world.Comm) error { return c.Bcast(make([]byte, length), 0) }},
		{"Allgatherv", 4 * length, func(c world.Comm) error {
			return c.Allgatherv(make([]byte, length), make([]byte, 4*length), []int{length, length, length, length})
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			want := 0.0
			if k.sent > 0 {
				want = k.sent/rate + latency.Seconds()
			}
			var took float64
			for range tries {
				start := time.Now()
				run(t, slow.NewNetwork(rate, latency), []string{"a", "a", "b", "b"}, k.do)
				if took = time.Since(start).Seconds(); took <= 1.5*want+0.03 {
					break
				}
			}
			if took < 0.99*want || took > 1.5*want+0.03 {
				t.Errorf("it took %.4f s, want %.4f", took, want)
			}
		})
	}
}

// tries are how often a time is taken that another program may have made longer.
const tries = 20

// The measured rate and latency between two hosts are the given ones.
func TestMeasured(t *testing.T) {
	n := slow.NewNetwork(10*rate, latency)
	n.SetRate(rate)
	run(t, n, []string{"a", "b"}, func(c world.Comm) error {
		var l, b float64
		for range tries { // as many on both ranks
			table, err := world.MeasureLinks(c)
			if err != nil {
				return err
			}
			if l, b = table.At(0, 1); l >= latency.Seconds() && l <= 3*latency.Seconds() && b <= 1.05*rate && b >= rate/2 {
				return nil
			}
		}
		t.Errorf("measured %.4f s and %.3g B/s", l, b)
		return nil
	})
}
