// Package durable writes files and folders atomically and durably. After a call
// returns without an error, the complete content survives a power failure under
// its final name.
//
// A call writes to a temporary name next to the final one, syncs, renames, and
// then syncs the parent folder. Package scratch provides the temporary name and
// removes the leftovers of killed processes. A call also syncs the parent of each
// folder that it creates.
//
// A call that fails before the rename leaves the previous content unchanged. A call
// that fails after the rename, in the last sync, has replaced the content, but the
// replacement may not survive a power failure.
//
// Errors are faults with the caller's operation and the final name. The umask
// determines the permissions, as for any new file.
//
// Design note: a file without a name (O_TMPFILE) would leave nothing behind,
// but it needs a temporary name to replace an older file, and network file
// systems do not support it.
package durable
