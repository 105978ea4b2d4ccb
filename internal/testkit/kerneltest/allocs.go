package kerneltest

import "testing"

// Allocs returns the number of allocations per call of f: the minimum over several series of
// calls. A regular allocation occurs in every series. A pool may be empty in one series, because
// the garbage collector emptied it or a suspended worker holds the memory.
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
