package codec

import "siafu/internal/catalog"

// Bases returns the names of all codecs that ByName knows, without suffixes.
func Bases() []string { return catalog.Names(catalog.Entries(kinds, nil)) }
