// Package tune chooses the codec that rows of ghosts travel through, for
// --codec auto.
//
// A Model foretells what exchanges cost an epoch with each candidate, from the
// rows that ranks send one another, the links measured between them, what
// encoding and decoding cost on real rows, and the work that hides messages. A
// Chooser goes by it at first, then by the seconds of epochs: it has the best
// candidates run in turns, settles on one, and looks again when epochs are long
// no more as long as they were.
//
// Both are functions of what they are told, and do nothing else: ranks that tell
// their Choosers the same choose the same.
package tune
