package inproc_test

import (
	"fmt"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Three ranks add up their numbers.
func ExampleRun() {
	err := inproc.Run(3, func(c world.Comm) error {
		x := []float32{float32(c.Rank()), 1}
		if err := world.SumFloat32s(c, x); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(x)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [3 3]
	// <nil>
}
