package kerneltest

import "testing"

// Allocs is how often a call of f allocates: the least of several series of
// calls. What allocates by itself does so in every series; in one of them pools
// may be empty because the collector has just been through them, or because a
// worker is suspended with the memory that the next one asks for.
func Allocs(f func()) float64 {
	const series, calls = 5, 5
	least := testing.AllocsPerRun(calls, f)
	for range series - 1 {
		if least == 0 {
			break
		}
		least = min(least, testing.AllocsPerRun(calls, f))
	}
	return least
}
