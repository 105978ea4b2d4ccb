package predictions

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

// A file in the run folder lists the vertices of the training, so that a prediction can omit them.
// It contains 64 bits of the SHA-256 of each id, in ascending order, but no ids: users may pass on
// a model without revealing them. With 10⁸ vertices in the training and 10⁸ in the prediction, the
// probability that any new vertex counts as known is 1 in 2,000.
const knownKind = "siafu.known"

// WriteKnown writes the file for a training on the dataset folder data: the number of vertices,
// and the hashes of their ids unless the ids are 0..n-1.
func WriteKnown(dir, data string) error {
	ds, err := graph.OpenIDs(data)
	if err != nil {
		return err
	}
	defer ds.Close()
	f, err := arrayfile.Create(filepath.Join(dir, runfolder.KnownFile), knownKind)
	if err != nil {
		return err
	}
	defer f.Abort()
	err = arrayfile.Put(f, "vertices", []int64{ds.Meta.Vertices})
	if ds.IDs != nil || ds.Meta.Relations != nil {
		arena := mapped.NewArena()
		defer arena.Free()
		hashes := mapped.Make[uint64](arena, int(ds.Meta.Vertices))
		for v := range hashes {
			hashes[v] = hashID(ds.VertexName(v))
		}
		slices.Sort(hashes)
		err = arrayfile.Put(f, "hashes", hashes)
	}
	if err != nil {
		return err
	}
	return f.Commit()
}

func hashID(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.LittleEndian.Uint64(sum[:])
}

// NewVertices returns the vertices of the dataset folder data that the training in the run folder
// dir did not contain, in ascending order. Faults have kind Missing, Data or IO.
func NewVertices(dir, data string) ([]uint32, error) {
	ds, err := graph.OpenIDs(data)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	f, err := arrayfile.Open(filepath.Join(dir, runfolder.KnownFile), knownKind)
	if err != nil {
		if fault.KindOf(err) == fault.Missing {
			err = fault.New(fault.Missing, "predict", filepath.Join(dir, runfolder.KnownFile),
				"the run folder does not list the vertices of the training").
				Then("leave --new out, or train again with this version")
		}
		return nil, err
	}
	defer f.Close()
	had, err := openKnown(f, filepath.Join(dir, runfolder.KnownFile))
	if err != nil {
		return nil, err
	}
	var list []uint32
	for v := range int(ds.Meta.Vertices) {
		if !had.has(ds.VertexName(v)) {
			list = append(list, uint32(v))
		}
	}
	return list, nil
}

// knownVertices is the set of the vertices of a training: the ids 0..n-1, or the ids with these
// hashes.
type knownVertices struct {
	n      int64
	hashes []uint64 // ascending; nil: the ids are 0..n-1
}

func openKnown(f *arrayfile.File, path string) (knownVertices, error) {
	count, err := arrayfile.Get[int64](f, "vertices")
	if err != nil {
		return knownVertices{}, err
	}
	if len(count) != 1 {
		return knownVertices{}, fault.New(fault.Data, "predict", path, "array \"vertices\" has %d elements", len(count)).Then("train again")
	}
	had := knownVertices{n: count[0]}
	if f.Has("hashes") {
		had.hashes, err = arrayfile.Get[uint64](f, "hashes")
	}
	return had, err
}

func (s knownVertices) has(id string) bool {
	if s.hashes != nil {
		_, found := slices.BinarySearch(s.hashes, hashID(id))
		return found
	}
	v, err := strconv.ParseInt(id, 10, 64)
	return err == nil && v >= 0 && v < s.n && strconv.FormatInt(v, 10) == id
}
