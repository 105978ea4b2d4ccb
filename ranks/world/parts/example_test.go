package parts_test

import (
	"fmt"

	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
	"siafu/ranks/world/parts"
)

// Five parts on two ranks add up what each has, as five ranks do.
func ExampleRunParts() {
	v := world.View{Parts: 5, Ranks: 2}
	err := inproc.Run(v.Started(), func(rank world.Comm) error {
		return parts.RunParts(rank, v, func(part world.Comm) error {
			x := []int64{int64(part.Rank()), 1}
			err := world.SumInt64s(part, x)
			if part.Rank() == 4 {
				fmt.Println(v.Name(4), "of", part.Size(), "has", x)
			}
			return err
		})
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: part 4 of rank 1 of 5 has [10 5]
}
