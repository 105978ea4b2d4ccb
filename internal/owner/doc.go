// Package owner guards folders with one writer: a Lock in a folder names the writing
// process and excludes a second one.
package owner
