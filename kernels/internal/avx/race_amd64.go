//go:build race

package avx

// detected returns None: the race detector does not see reads and writes of assembly.
func detected() Set { return None }
