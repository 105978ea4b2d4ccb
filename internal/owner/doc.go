// Package owner ensures that a folder has one writer. A Lock in the folder names the writing
// process and excludes a second one.
package owner
