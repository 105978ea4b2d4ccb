package world_test

import (
	"fmt"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Every rank gets the same table, filled except for the diagonal, in time.
func TestMeasure(t *testing.T) {
	for _, n := range []int{1, 2, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			tables := make([]*world.Links, n)
			start := time.Now()
			err := inproc.Run(n, func(c world.Comm) (err error) {
				tables[c.Rank()], err = world.MeasureLinks(c)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d > hosttest.Patience/2 {
				t.Errorf("it took %v", d)
			}
			for r, table := range tables {
				check(t, table, tables[0], r)
			}
		})
	}
}

func check(t *testing.T, got, first *world.Links, rank int) {
	t.Helper()
	for p := range got.Size {
		for q := range got.Size {
			l, b := got.At(p, q)
			if l1, b1 := first.At(q, p); l != l1 || b != b1 {
				t.Errorf("rank %d has %g s and %g B/s from %d to %d, rank 0 %g and %g back", rank, l, b, p, q, l1, b1)
			}
			if (l > 0 && b > 0) != (p != q) {
				t.Errorf("from %d to %d: %g s, %g B/s", p, q, l, b)
			}
		}
	}
	if _, _, ok := got.Slowest(); ok != (got.Size > 1) {
		t.Errorf("a slowest pair among %d ranks: %t", got.Size, ok)
	}
}

// delayed is a world in which one pair's messages take longer.
type delayed struct {
	world.Comm
	a, b int
}

func (d delayed) Recv(src, tag int) (world.Message, error) {
	m, err := d.Comm.Recv(src, tag)
	if me := d.Rank(); src == d.a && me == d.b || src == d.b && me == d.a {
		time.Sleep(5 * time.Millisecond)
	}
	return m, err
}

// The slow link is found.
func TestSlowLink(t *testing.T) {
	err := inproc.Run(4, func(c world.Comm) error {
		table, err := world.MeasureLinks(delayed{c, 1, 3})
		if err != nil {
			return err
		}
		if p, q, _ := table.Slowest(); p != 1 || q != 3 {
			t.Errorf("the slowest pair is %d, %d", p, q)
		}
		if l, _ := table.At(3, 1); l < 0.005 {
			t.Errorf("its latency is %g s", l)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
