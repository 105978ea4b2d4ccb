package comm

import (
	"encoding/binary"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Swap sends messages[q] to rank q and returns the messages from all ranks, at most most(q)
// numbers from rank q. Ranks need not know the lengths in advance. Collective.
func Swap(c Comm, messages [][]uint32, most func(q int) uint64) ([][]uint32, error) {
	var lengths []byte
	counts := make([]int, len(messages))
	for q, m := range messages {
		lengths, counts[q] = binary.LittleEndian.AppendUint64(lengths, uint64(len(m))), 4*len(m)
	}
	received, eight := make([]byte, len(lengths)), slices.Repeat([]int{8}, len(messages))
	if err := exchange(c, lengths, eight, received, eight); err != nil {
		return nil, err
	}
	inCounts, total := make([]int, len(messages)), 0
	for q := range inCounts {
		n := binary.LittleEndian.Uint64(received[8*q:])
		if n > most(q) {
			return nil, fault.New(fault.Runtime, "exchange", "",
				"rank %d announces %d numbers to rank %d, which expects at most %d", q, n, c.Rank(), most(q))
		}
		inCounts[q], total = 4*int(n), total+int(n)
	}
	in := make([]uint32, total)
	if err := exchange(c, mapped.Bytes(slices.Concat(messages...)), counts, mapped.Bytes(in), inCounts); err != nil {
		return nil, err
	}
	answers := make([][]uint32, len(messages))
	for q, bytes := range inCounts {
		answers[q], in = in[:bytes/4], in[bytes/4:]
	}
	return answers, nil
}

// exchange runs Ialltoallv and waits for it. Collective.
func exchange(c Comm, out []byte, outCounts []int, in []byte, inCounts []int) error {
	r, err := c.Ialltoallv(out, outCounts, in, inCounts)
	if err != nil {
		return err
	}
	return r.Wait()
}
