// Package durable writes files and folders that appear whole or not at all, and
// that stay: when a call has returned without an error, what it has written is
// there after a power failure, under its name.
//
// Both need an order. What is written gets a temporary name beside the final
// one (package scratch, which also removes what killed processes have left), is
// synced, is renamed, and then the folder that holds the name is synced. A
// folder that is made on the way is a new name in the folder above it, which is
// synced as well.
//
// A call that fails before the rename leaves what was there before, and nothing
// else. One that fails behind it, in the last sync, has replaced it, and only
// whether that lasts is unknown.
//
// Errors are faults of the operation that the caller names, about the final
// name. Permissions are those that the umask leaves, as for any new file.
//
// Design note: a file without a name (O_TMPFILE) would leave nothing behind,
// but it cannot replace an older file without taking a temporary name first, and
// network file systems know none.
package durable
