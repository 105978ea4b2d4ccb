// Package fault defines the errors of siafu. An Error has the operation, its kind,
// the file, the problem found there and the remedy. Only the kind determines the
// exit code of the process.
//
// A programming error is not a fault: it panics with a constant string.
package fault
