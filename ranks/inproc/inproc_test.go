package inproc_test

import (
	"strconv"
	"testing"

	"siafu/ranks/inproc"
	"siafu/ranks/world"
	"siafu/ranks/world/worldtest"
)

func TestConformance(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 7} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			worldtest.Run(t, size, func(t *testing.T, body func(c world.Comm) error) {
				if err := inproc.Run(size, body); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
