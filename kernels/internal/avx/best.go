package avx

import "os"

// CPUVariable is the environment variable with which tests make a processor look older: avx2 or go
// (no assembly).
const CPUVariable = "SIAFU_CPU"

var best = limit(detected(), os.Getenv(CPUVariable))

// Best returns the best instruction set of this machine, or a lesser one that CPUVariable names.
func Best() Set { return best }

// limit returns the lesser of two instruction sets. A name of none does not limit.
func limit(s Set, name string) Set {
	for lesser := None; lesser < s; lesser++ {
		if lesser.String() == name {
			return lesser
		}
	}
	return s
}
