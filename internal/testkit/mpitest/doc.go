// Package mpitest runs programs under mpirun in tests.
package mpitest
