// Package scratch creates temporary files and folders next to their final names, and removes the
// leftovers of killed processes.
//
// A killed process leaves a partly written file or folder, which may be as large as
// a dataset. The next process that creates one for the same name removes it, if two
// conditions hold:
//
//   - siafu created it. Its name ends in an id with a checksum of the id and of the
//     name before it, so no other name matches: .cora.tmp-ID for a folder,
//     summary.json.tmp-ID for a file. The user of this process also owns it.
//   - No process writes it. The creator, and the processes that it shares the file
//     with, hold a lock (flock), which the kernel releases when the last one ends.
//     On a file system without locks, or if the id names another host, whose locks
//     may be invisible here, it must also be unchanged for a day.
//
// Package durable makes the content durable.
package scratch
