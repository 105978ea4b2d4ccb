package world

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"siafu/internal/fault"
)

// Agree returns nil on every rank if all passed nil. Otherwise it returns an AgreedError on
// every rank, with the message and kind of the error of the first rank, in ascending order,
// that passed one. The message names the rank unless it is rank 0. A rank whose communicator
// fails gets its own error back, or else the communicator's error. Collective.
func Agree(c Comm, err error) error {
	if c.Size() == 1 {
		return err
	}
	// Each rank sends one number: 0 for success, or the message's length plus one. The usual case
	// is then a single small collective.
	text := ""
	var mine int64
	if err != nil {
		text = err.Error()
		mine = int64(len(text)) + 1
	}
	lengths, commErr := gatherInt64(c, mine)
	if commErr == nil {
		for r, n := range lengths {
			if n != 0 {
				return shareError(c, r, int(n-1), text, err)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return commErr
}

// shareError broadcasts rank r's error: the kind in one byte, then the n bytes of its text.
// text and err are the caller's own.
func shareError(c Comm, r, n int, text string, err error) error {
	wire := make([]byte, 1+n)
	if c.Rank() == r {
		wire[0] = byte(fault.KindOf(err))
		copy(wire[1:], text)
	}
	if commErr := c.Bcast(wire, r); commErr != nil {
		if err != nil {
			return err
		}
		return commErr
	}
	shared := &fault.Error{Kind: fault.Kind(wire[0])}
	if r > 0 { // rank 0 reports for all
		shared.Op = "rank " + strconv.Itoa(r)
	}
	if c.Rank() == r {
		shared.Err = err // the rank itself retains the error chain
	} else {
		shared.Detail = string(wire[1:])
	}
	return &AgreedError{shared}
}

// Gather gathers the blocks of all ranks on root, in the order of ranks. The blocks may differ in
// length. The result is nil on other ranks. Collective.
func Gather(c Comm, root int, block []byte) ([][]byte, error) {
	CheckRank(c.Size(), root)
	lengths, err := gatherInt64(c, int64(len(block)))
	if err != nil {
		return nil, err
	}
	sendCounts, recvCounts := make([]int, c.Size()), make([]int, c.Size())
	sendCounts[root] = len(block)
	var all []byte
	if c.Rank() == root {
		total := 0
		for q, n := range lengths {
			recvCounts[q] = int(n)
			total += int(n)
		}
		all = make([]byte, total)
	}
	req, err := c.Ialltoallv(block, sendCounts, all, recvCounts)
	if err != nil {
		return nil, err
	}
	if err := req.Wait(); err != nil || c.Rank() != root {
		return nil, err
	}
	return cut(all, recvCounts), nil
}

// Scatter sends one block from root to each rank. The blocks may differ in length. Only root
// passes blocks. Collective.
func Scatter(c Comm, root int, blocks [][]byte) ([]byte, error) {
	CheckRank(c.Size(), root)
	lengths := make([]int64, c.Size())
	var all []byte
	sendCounts, recvCounts := make([]int, c.Size()), make([]int, c.Size())
	if c.Rank() == root {
		for q, b := range blocks {
			lengths[q], sendCounts[q] = int64(len(b)), len(b)
		}
		all = slices.Concat(blocks...)
	}
	if err := c.Bcast(bytesOf(lengths), root); err != nil {
		return nil, err
	}
	recvCounts[root] = int(lengths[c.Rank()])
	mine := make([]byte, recvCounts[root])
	req, err := c.Ialltoallv(all, sendCounts, mine, recvCounts)
	if err != nil {
		return nil, err
	}
	return mine, req.Wait()
}

// GatherValues gathers the values of all ranks on root, like Gather. It sends them as JSON.
// Collective.
func GatherValues[T any](c Comm, root int, mine T) ([]T, error) {
	if c.Size() == 1 {
		return []T{mine}, nil // no JSON in each epoch of a small graph
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	blocks, err := Gather(c, root, text)
	all := make([]T, len(blocks))
	for r, b := range blocks {
		err = cmp.Or(err, json.Unmarshal(b, &all[r]))
	}
	return all, err
}

// BcastBlob broadcasts a blob whose length only root knows. It returns blob itself on root and a
// new slice on other ranks, whose argument is ignored. Collective.
func BcastBlob(c Comm, blob []byte, root int) ([]byte, error) {
	length := []int64{int64(len(blob))}
	if err := c.Bcast(bytesOf(length), root); err != nil {
		return nil, err
	}
	if c.Rank() != root {
		blob = make([]byte, length[0])
	}
	if err := c.Bcast(blob, root); err != nil {
		return nil, err
	}
	return blob, nil
}

// gatherInt64 returns the numbers of all ranks on all ranks.
func gatherInt64(c Comm, mine int64) ([]int64, error) {
	all := make([]int64, c.Size())
	err := c.Allgatherv(bytesOf([]int64{mine}), bytesOf(all), slices.Repeat([]int{8}, c.Size()))
	return all, err
}

// cut divides buf into blocks of the given lengths. Each has no spare capacity, so that
// appending to one cannot overwrite the next.
func cut(buf []byte, counts []int) [][]byte {
	blocks := make([][]byte, len(counts))
	for q, n := range counts {
		blocks[q] = buf[:n:n]
		buf = buf[n:]
	}
	return blocks
}
