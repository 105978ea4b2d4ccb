// Package scratch makes what is only temporary, a file or a folder, beside the
// name that it is for, and removes what others have left there.
//
// A process that is killed leaves behind what it was filling, which may be as
// large as a dataset. Whoever makes something for the same name removes it, as
// soon as two things are proven:
//
//   - It was made here. A name ends in an id that carries a checksum of itself
//     and of the name before it, so that no other name is taken for one:
//     .cora.tmp-ID for a folder, summary.json.tmp-ID for a file. It also belongs
//     to the user of this process.
//   - Nobody fills it any more. That is asked of the kernel: the maker, and whom
//     it shares it with, hold a lock (flock), which ends with the last of them.
//     Where the file system has no locks, and where the id says that it was made
//     on another host, whose locks may not be seen from here, it must also not
//     have changed for a day.
//
// Whether what was filled is durable is the business of package durable.
package scratch
