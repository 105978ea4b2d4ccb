// Package host reports the resources of a rank's machine: the available memory within the
// control groups of the process, and the memory that the process uses.
package host
