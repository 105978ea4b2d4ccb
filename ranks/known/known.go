// Package known remembers which vertices a training has seen, by their user's ids, so
// that a prediction can leave them out.
//
// A file of a run folder keeps 64 bits of each id's SHA-256 in ascending order, and no
// ids: a model may be handed on without them. Among 10⁸ vertices seen and as many asked
// for, the chance that a new one passes for one of them is 1 in 2,000.
package known

import (
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strconv"

	"siafu/graph"
	"siafu/internal/arrayfile"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/ranks/runfolder"
)

const kind = "siafu.known"

// Write writes the file of a training on the dataset folder data: the number of its
// vertices, and what stands for their ids unless these are 0..n-1.
func Write(dir, data string) error {
	ids, n, done, err := graph.OpenIDs(data)
	if err != nil {
		return err
	}
	defer done()
	f, err := arrayfile.Create(filepath.Join(dir, runfolder.KnownFile), kind)
	if err != nil {
		return err
	}
	defer f.Abort()
	err = arrayfile.Put(f, "vertices", []int64{n})
	if ids != nil {
		arena := mapped.NewArena()
		defer arena.Free()
		hashes := mapped.Make[uint64](arena, int(n))
		for v := range hashes {
			hashes[v] = hash(ids.At(v))
		}
		slices.Sort(hashes)
		err = arrayfile.Put(f, "hashes", hashes)
	}
	if err != nil {
		return err
	}
	return f.Commit()
}

func hash(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.LittleEndian.Uint64(sum[:])
}

// New are the vertices of the dataset folder data, in ascending order, that the training
// whose run folder is dir has not seen. Faults have kind Missing, Data or IO.
func New(dir, data string) ([]uint32, error) {
	ids, n, done, err := graph.OpenIDs(data)
	if err != nil {
		return nil, err
	}
	defer done()
	f, err := arrayfile.Open(filepath.Join(dir, runfolder.KnownFile), kind)
	if err != nil {
		if fault.KindOf(err) == fault.Missing {
			err = fault.New(fault.Missing, "predict", filepath.Join(dir, runfolder.KnownFile), "the run folder does not list the vertices of the training").
				Then("leave --new out, or train again with this version")
		}
		return nil, err
	}
	defer f.Close()
	had, err := open(f, filepath.Join(dir, runfolder.KnownFile))
	if err != nil {
		return nil, err
	}
	var list []uint32
	for v := range int(n) {
		if !had.has(ids.At(v)) {
			list = append(list, uint32(v))
		}
	}
	return list, nil
}

// vertices are those of a training: 0..n-1, or those whose ids have these hashes.
type vertices struct {
	n      int64
	hashes []uint64 // ascending; nil: ids are 0..n-1
}

func open(f *arrayfile.File, path string) (vertices, error) {
	count, err := arrayfile.Get[int64](f, "vertices")
	if err != nil {
		return vertices{}, err
	}
	if len(count) != 1 {
		return vertices{}, fault.New(fault.Data, "predict", path, "array \"vertices\" has %d elements", len(count)).Then("train again")
	}
	had := vertices{n: count[0]}
	if f.Has("hashes") {
		had.hashes, err = arrayfile.Get[uint64](f, "hashes")
	}
	return had, err
}

func (s vertices) has(id string) bool {
	if s.hashes != nil {
		_, found := slices.BinarySearch(s.hashes, hash(id))
		return found
	}
	v, err := strconv.ParseInt(id, 10, 64)
	return err == nil && v >= 0 && v < s.n && strconv.FormatInt(v, 10) == id
}
