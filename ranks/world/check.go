package world

import (
	"encoding/binary"
	"hash/fnv"
)

// MaxTag is the largest tag of a message.
const MaxTag = 32767

// Every world checks its arguments with the functions below before it communicates. They check
// one rank's arguments; the world checks the agreement between ranks. A wrong argument is a
// programmer's error and panics.

// CheckAlltoallv checks the arguments of Ialltoallv in a world of size ranks.
func CheckAlltoallv(size int, send []byte, sendCounts []int, recv []byte, recvCounts []int) {
	checkBlocks(size, len(send), sendCounts)
	checkBlocks(size, len(recv), recvCounts)
}

// CheckAllgatherv checks the arguments of Allgatherv on the given rank.
func CheckAllgatherv(rank, size int, send, recv []byte, counts []int) {
	checkBlocks(size, len(recv), counts)
	if len(send) != counts[rank] {
		panic("world: send is not as long as its count")
	}
}

// CheckRank checks the rank of a peer.
func CheckRank(size, rank int) {
	if rank < 0 || rank >= size {
		panic("world: rank out of range")
	}
}

// CheckSend checks the arguments of Isend.
func CheckSend(size, dst, tag int) {
	CheckRank(size, dst)
	if tag < 0 || tag > MaxTag {
		panic("world: tag out of range")
	}
}

// CheckRecv checks the arguments of Recv and TryRecv.
func CheckRecv(size, src, tag int) {
	if src != Any {
		CheckRank(size, src)
	}
	if tag < Any || tag > MaxTag {
		panic("world: tag out of range")
	}
}

// CheckSub checks the arguments of Sub.
func CheckSub(size int, ranks []int) {
	seen := make([]bool, size)
	for _, r := range ranks {
		CheckRank(size, r)
		if seen[r] {
			panic("world: rank listed twice")
		}
		seen[r] = true
	}
}

// checkBlocks checks that counts divide a buffer of length bytes into one block per rank.
func checkBlocks(size, length int, counts []int) {
	if len(counts) != size {
		panic("world: counts must have one entry for each rank")
	}
	for _, n := range counts {
		// Subtracting instead of adding up cannot overflow.
		if n < 0 || n > length {
			panic("world: counts do not add up to the buffer")
		}
		length -= n
	}
	if length != 0 {
		panic("world: counts do not add up to the buffer")
	}
}

// All returns the ranks of a world of size ranks.
func All(size int) []int {
	ranks := make([]int, size)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// Hash returns a hash of a text and numbers, the same in all processes.
func Hash(text string, numbers ...int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text)) // never fails
	for _, n := range numbers {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	return h.Sum64()
}

// Offsets returns the start of each of consecutive blocks with the given lengths, and the end
// of the last one: len(counts)+1 numbers.
func Offsets(counts []int) []int {
	at := make([]int, len(counts)+1)
	for q, n := range counts {
		at[q+1] = at[q] + n
	}
	return at
}
