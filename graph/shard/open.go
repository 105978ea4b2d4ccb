package shard

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/internal/arrayfile"
	"siafu/internal/fault"
)

const opOpen = "open shard"

// Open is OpenIn for the folder parts/P in the dataset folder dir.
func Open(dir string, parts, rank int) (*Shard, error) {
	return OpenIn(Folder(dir, parts), dir, parts, rank)
}

// OpenIn maps the shard of a rank into memory. folder contains the shards of the dataset in the
// folder dir for the given number of parts. OpenIn verifies the checksums, the rank, the number of
// parts, the fingerprint of the dataset, and all invariants in the comments of Shard. Callers need
// not check any index. Faults have kind Missing if there is no shard, and Data if the file is
// damaged or belongs to another dataset or rank. Other faults have kind IO.
func OpenIn(folder, dir string, parts, rank int) (*Shard, error) {
	if parts < 1 || rank < 0 || rank >= parts {
		panic("shard: rank outside 0..parts-1")
	}
	meta, err := graph.ReadMeta(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, name(rank))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Missing, opOpen, path, "the dataset has no shards for %d ranks", parts).
			Then(`run "siafu partition --parts %d %s"`, parts, dir)
	}
	f, err := arrayfile.Open(path, Kind)
	if err != nil {
		return nil, err
	}
	v := verifier{path: path}
	if err := v.open(f, dir, meta, parts, rank); err != nil {
		v.s.Close()
		return nil, err
	}
	return v.s, nil
}

// UseAll makes s a shard of all vertices of ds, in the order of ds, whose arrays it uses (Shard.Whole).
func (s *Shard) UseAll(ds *graph.Dataset) {
	s.Whole = true
	s.In, s.InOwnEnd = ds.In, ds.In.Offsets[1:]
	s.Weights, s.EdgeFeatures, s.Relations = ds.Weights, ds.EdgeFeatures, ds.Relations
	s.Features, s.Labels, s.Targets, s.Split = ds.Features, ds.Labels, ds.Targets, ds.Split
}

// Paths returns the paths of the shards in a folder, by rank.
func Paths(folder string, parts int) (list []string) {
	for rank := range parts {
		list = append(list, filepath.Join(folder, name(rank)))
	}
	return list
}

// read returns a shard with the arrays of f, which the shard closes, also after an error. It verifies
// neither the arrays nor the header, which may have any length.
func read(f *arrayfile.File) (s *Shard, header []int64, err error) {
	s = &Shard{files: []io.Closer{f}, Weighted: f.Has(nInStrength), Whole: !f.Has(nInCols)}
	if f.Has(nSparseOffsets) {
		s.Features.Sparse = new(graph.SparseRows)
	}
	if f.Has(nHalf) {
		s.Features.Half = []graph.BF16{}
	}
	if f.Has(nRelations) {
		s.Relations = []uint16{}
	}
	var fingerprint, assignment []uint8
	list := append([]array{of(nHeader, &header), of(nFingerprint, &fingerprint), of(nAssignment, &assignment)},
		s.arrays(f.Has(nEdgeMeans), f.Has(nTargets))...)
	for _, a := range list {
		if err := a.read(f); err != nil {
			return s, nil, err
		}
	}
	s.Fingerprint, s.Assignment = string(fingerprint), string(assignment)
	return s, header, nil
}

// fill sets the fields of s that are stored in the header h.
func (s *Shard) fill(h []int64) {
	s.Parts, s.Rank, s.Vertices, s.Directed = int(h[hParts]), int(h[hRank]), h[hVertices], h[hDirected] != 0
	s.Classes, s.FeatureDim = int(h[hClasses]), int(h[hFeatureDim])
	s.TrainTotal, s.ValTotal, s.TestTotal = h[hTrain], h[hVal], h[hTest]
	s.MajorityTest = math.Float64frombits(uint64(h[hMajority]))
	s.Features.Rows, s.Features.Dim = len(s.Own), s.FeatureDim
}
