//go:build race

package avx

// Compiled is the best instruction set of this build.
const Compiled = None

// detected returns None: the race detector does not see reads and writes of assembly.
func detected() Set { return None }
