// Package bench measures siafu and reproduces published tables. Every table
// it prints begins with the machine and the command line that made it.
package bench
