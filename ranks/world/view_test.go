package world

import (
	"fmt"
	"testing"
)

// Every member is carried by one rank, blocks follow one another and differ by
// one part at the most, and Rank is the inverse of Block.
func TestViewIsAPartition(t *testing.T) {
	for ranks := 1; ranks <= 9; ranks++ {
		for parts := ranks; parts <= 20; parts++ {
			v := View{Parts: parts, Ranks: ranks, Servers: parts % 3}
			next := 0
			for r := range v.Started() {
				lo, hi := v.Block(r)
				if lo != next || hi <= lo || r < ranks && hi-lo > parts/ranks+1 || r < ranks && hi-lo < parts/ranks {
					t.Fatalf("%+v: rank %d carries %d to %d", v, r, lo, hi)
				}
				for m := lo; m < hi; m++ {
					if v.Rank(m) != r {
						t.Fatalf("%+v: member %d is in the block of rank %d, and Rank says %d", v, m, r, v.Rank(m))
					}
				}
				next = hi
			}
			if next != v.Members() {
				t.Fatalf("%+v: %d members are carried of %d", v, next, v.Members())
			}
		}
	}
}

func ExampleView() {
	v := View{Parts: 5, Ranks: 2, Servers: 1}
	for m := range v.Members() {
		fmt.Println(v.Name(m))
	}
	// Output:
	// part 0 of rank 0
	// part 1 of rank 0
	// part 2 of rank 0
	// part 3 of rank 1
	// part 4 of rank 1
	// rank 2
}
