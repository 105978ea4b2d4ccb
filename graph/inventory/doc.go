// Package inventory tells what siafu has written from what it has not.
//
// siafu removes and overwrites nothing that it cannot prove to be its own, with
// --force or without. The proofs:
//
//   - a Marker in a folder says that siafu has made it, and a Folder says what
//     siafu writes there: which names, at which place. A folder is replaced, or
//     anything in it removed, only where Foreign finds nothing else in it;
//   - a single file is overwritten only where Overwrite finds siafu's own words
//     at its beginning.
//
// Symbolic links are never siafu's: it makes none.
//
// Design note: to leave foreign files where they are and replace the rest was
// rejected. What lies beside the old results belongs to them, and a folder that
// mixes two runs is no help to anybody; whoever put it there moves it away.
package inventory
