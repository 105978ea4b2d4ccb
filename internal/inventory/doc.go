// Package inventory distinguishes files that siafu wrote from other files.
//
// siafu removes and overwrites only its own files, with or without --force:
//
//   - A Marker in a folder records that siafu created it, and a Folder lists the
//     names that siafu writes there. siafu replaces a folder, or removes files in
//     it, only if Foreign finds no other files.
//   - siafu overwrites a single file only if Overwrite finds siafu's header at its
//     beginning.
//
// siafu creates no symbolic links, so a link always counts as foreign.
//
// Design note: replacing siafu's files and keeping foreign files was rejected.
// Foreign files may belong to the old results, and the folder would mix two runs.
// The user must move them.
package inventory
