// Package owner says who writes a folder: the Process, whether it still runs,
// and the Lock that keeps a second one away.
package owner
