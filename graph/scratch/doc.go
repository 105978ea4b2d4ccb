// Package scratch makes the hidden folder that is filled before it takes the
// name of a dataset or of its shards.
//
// A process that is killed leaves its folder behind, which may be as large as
// the dataset. Make removes such folders beside the one that it makes. Whether
// somebody still fills one is asked of the kernel: its maker holds a lock
// (flock) on it, which ends with the process. Where the file system has no
// locks, what has not changed for a day is taken for abandoned.
package scratch
