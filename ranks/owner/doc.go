// Package owner says who writes a folder: a Lock in it names the process and keeps
// a second one away.
package owner
