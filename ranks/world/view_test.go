package world_test

import (
	"fmt"
	"slices"
	"testing"

	"siafu/ranks/world"
)

// checkCarried fails unless every member is carried by one rank, and Rank is the
// inverse of Carried.
func checkCarried(t *testing.T, v world.View) {
	t.Helper()
	seen := 0
	for r := range v.Started() {
		for _, m := range v.Carried(r) {
			if v.Rank(m) != r {
				t.Fatalf("%+v: rank %d carries member %d, and Rank says %d", v, r, m, v.Rank(m))
			}
			seen++
		}
	}
	if seen != v.Members() {
		t.Fatalf("%+v: %d members are carried of %d", v, seen, v.Members())
	}
}

// The first view of a world has consecutive blocks, whose sizes differ by at most one part.
func TestFirstViewHasBlocks(t *testing.T) {
	for ranks := 1; ranks <= 9; ranks++ {
		for parts := ranks; parts <= 20; parts++ {
			v := world.View{Parts: parts, Ranks: ranks, Servers: parts % 3}
			checkCarried(t, v)
			next := 0
			for r := range ranks {
				here := v.Carried(r)
				if len(here) < parts/ranks || len(here) > (parts+ranks-1)/ranks || here[0] != next {
					t.Fatalf("%+v: rank %d carries %v", v, r, here)
				}
				next += len(here)
			}
		}
	}
}

// A view that replaces another one has the same members, and only the requested parts move.
func TestNextViews(t *testing.T) {
	v := world.View{Parts: 7, Ranks: 3, Servers: 2}
	moved := v.Move(1, 2)
	checkCarried(t, moved)
	if moved.Number != 1 || moved.Rank(1) != 2 || !slices.Equal(moved.Carried(0), []int{0, 2}) ||
		!slices.Equal(moved.Carried(3), []int{7}) {
		t.Errorf("%+v", moved)
	}
	without := moved.WithoutRank(2)
	checkCarried(t, without)
	if without.Number != 2 || len(without.Carried(2)) != 0 || len(without.Carried(0)) != 4 || len(without.Carried(1)) != 3 {
		t.Errorf("%+v", without)
	}
	if moved.Rank(5) != 2 || v.Carrier != nil {
		t.Error("a view has changed that was replaced")
	}
	if alone := (world.View{Parts: 3, Ranks: 1}).WithoutRank(0); len(alone.Carried(0)) != 3 {
		t.Errorf("%+v", alone)
	}
	if again := v.Restart(); again.Number != 1 || !slices.Equal(again.Carried(1), v.Carried(1)) {
		t.Errorf("%+v", again)
	}
}

// A view follows another one if it has the same members and ranks, and the next number.
func TestReplaces(t *testing.T) {
	v := world.View{Parts: 5, Ranks: 3, Servers: 1}
	for name, tc := range map[string]struct {
		next world.View
		want bool
	}{
		"moved":            {v.Move(0, 1), true},
		"to a server":      {v.Move(0, 3), true},
		"without a rank":   {v.WithoutRank(1), true},
		"an old one":       {v, false},
		"a later one":      {v.Move(0, 1).Move(0, 2), false},
		"no such rank":     {v.Move(0, 4), false},
		"of other parts":   {(world.View{Parts: 6, Ranks: 3, Servers: 1}).Move(0, 1), false},
		"of other servers": {(world.View{Parts: 5, Ranks: 2, Servers: 2}).Move(0, 1), false},
	} {
		if got := tc.next.Replaces(v); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func ExampleView() {
	v := world.View{Parts: 5, Ranks: 2, Servers: 1}
	for m := range v.Members() {
		fmt.Println(v.Name(m))
	}
	fmt.Println("and then", v.Move(1, 1).Name(1))
	// Output:
	// part 0 of rank 0
	// part 1 of rank 0
	// part 2 of rank 0
	// part 3 of rank 1
	// part 4 of rank 1
	// rank 2
	// and then part 1 of rank 1
}
