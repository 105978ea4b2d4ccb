package halo

import (
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/shard"
)

// Any message about sums gives a plan or an error.
func TestDamagedSums(t *testing.T) {
	s := &shard.Shard{
		Parts: 2, Own: []uint32{10, 11, 12, 13}, SendStart: []int64{0, 0, 3}, SendRows: []uint32{0, 2, 3},
		GhostStart: []int64{0, 0, 0}, In: graph.CSR{Offsets: []int64{0, 0, 0, 0, 0}}, InOwnEnd: []int64{0, 0, 0, 0},
	}
	for name, tc := range map[string]struct {
		message []uint32
		want    string // in the error; empty: none
	}{
		"all rows":            {nil, ""},
		"no rows":             {[]uint32{0, 0, 0}, ""},
		"a row and a sum":     {[]uint32{1, 1, 2, 1, 77, 2, 0, 2}, ""},
		"no head":             {[]uint32{0, 0}, "2 numbers"},
		"too short":           {[]uint32{1, 1, 2, 1, 77, 2, 0}, "4 numbers do not fit 1 rows and 1 sums of 2"},
		"too long":            {[]uint32{0, 0, 0, 5}, "1 numbers do not fit 0 rows"},
		"huge counts":         {[]uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, "0 numbers do not fit 4294967295 rows"},
		"row out of range":    {[]uint32{1, 0, 0, 3}, "row 0 of 3 has the invalid number 3"},
		"row twice":           {[]uint32{2, 0, 0, 1, 1}, "row 1 of 3 has the invalid number 1"},
		"source out of range": {[]uint32{0, 1, 1, 77, 1, 3}, "sum 0 has row 3 of 3"},
		"empty sum":           {[]uint32{0, 1, 0, 77, 0}, "sum 0 has 0 sources"},
		"sum too long":        {[]uint32{0, 1, 1, 77, 2, 0}, "sum 0 has 2 sources, but only 1 are left"},
		"sources left":        {[]uint32{0, 1, 2, 77, 1, 0, 1}, "1 sources belong to no sum"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(s)
			err := o.take(0, nil)
			if err == nil {
				err = o.take(1, tc.message)
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
