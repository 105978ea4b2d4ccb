// Package faulttest tests faults of real ranks under mpirun, each at a given moment of
// a run (package ranks/inject). The job must end within the limits, name the rank and
// restart. The final model must be that of a run without faults. No process and no
// partly written file may remain.
//
// TestMatrix combines faults, victims, modes and moments, so that each pair of values
// occurs. It adds random combinations, many more with SIAFU_BIG=1. A failed test
// prints their seed, and SIAFU_FAULT_SEED repeats them.
package faulttest
