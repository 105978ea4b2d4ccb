package world_test

import (
	"errors"
	"fmt"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Rank 1 cannot open its file, and all ranks receive its error.
func ExampleAgree() {
	err := inproc.Run(3, func(c world.Comm) error {
		var err error
		if c.Rank() == 1 {
			err = errors.New("open parts/3/1.part: no such file")
		}
		if err = world.Agree(c, err); c.Rank() == 0 {
			fmt.Println(err)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// rank 1: open parts/3/1.part: no such file
	// <nil>
}
