// Package fault is the vocabulary of what can go wrong: an error carries the
// operation, its kind, the file, what was found there and what to do next. The
// kind decides the exit code of the process, and nothing else does.
//
// A programmer's error is not a fault: it panics with a constant string.
package fault
