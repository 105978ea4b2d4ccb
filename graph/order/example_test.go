package order_test

import (
	"fmt"

	"siafu/graph/order"
)

// Two triangles whose vertices are numbered in turn.
func ExampleNew() {
	g := rows(6, false, [2]int{0, 2}, [2]int{2, 4}, [2]int{4, 0}, [2]int{1, 3}, [2]int{3, 5}, [2]int{5, 1})
	fmt.Println(order.New("lp", g).Vertices)
	// Output: [0 2 4 1 3 5]
}
