package codec

import (
	"maps"
	"slices"
)

// Bases are the names of all codecs that ByName knows, without suffixes.
func Bases() []string {
	list := slices.Sorted(maps.Keys(parametric))
	for _, c := range simple {
		list = append(list, c.Name())
	}
	return list
}
