// Package faulttest lets real ranks under mpirun meet real faults, each at a
// chosen moment of a run (package ranks/inject), and looks at what becomes of
// the job: that it ends in time, names the rank, is started again and goes on
// to the very model that an undisturbed run makes, and that no process and no
// half-written file is left.
//
// TestMatrix has faults, victims, modes and moments, so that each pair of two
// of them occurs, and then some at random, with SIAFU_BIG=1 many more of these:
// SIAFU_FAULT_SEED repeats those of a seed that a failed test has printed.
package faulttest
