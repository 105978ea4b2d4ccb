package kernels_test

import (
	"fmt"

	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// Three vertices in a row, 0-1-2, gather the mean of their neighbours.
func ExampleSpMM() {
	team := kernels.NewTeam(2)
	defer team.Close()
	g := kernels.Gather{
		Begin: []int64{0, 1, 3}, End: []int64{1, 3, 4},
		Cols:     []uint32{1, 0, 2, 1},
		RowScale: []float32{1, 0.5, 1},
	}
	x := []float32{
		1, 10,
		2, 20,
		3, 30,
	}
	dst := make([]float32, 6)
	flat.SpMM(team, dst, 2, g, x, false)
	fmt.Println(dst)
	// Output: [2 20 2 20 2 20]
}
