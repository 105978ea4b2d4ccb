package shard

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/internal/arrayfile"
	"siafu/internal/fault"
)

const opOpen = "open shard"

// Open calls OpenIn for the folder parts/P of the dataset.
func Open(dir string, parts, rank int) (*Shard, error) {
	return OpenIn(Folder(dir, parts), dir, parts, rank)
}

// OpenIn maps the shard of a rank (of parts ranks) of the dataset dir from folder. It verifies
// checksums, rank, number of parts, the dataset's current fingerprint, and all invariants in
// Shard's comments. Callers need not check any index. Faults have kind Missing if the dataset
// is not partitioned for parts ranks, Data if the file is damaged or belongs to another dataset
// or rank, and otherwise IO.
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
	s, err := v.open(f, meta, parts, rank)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.close = f.Close
	return s, nil
}

// read fills a shard with the arrays of f without verifying them. It returns the header
// separately because the header may have any length.
func read(f *arrayfile.File) (s *Shard, header []int64, err error) {
	s = &Shard{Weighted: f.Has(nWeights)}
	if f.Has(nSparseOffsets) {
		s.Features.Sparse = new(graph.SparseRows)
	}
	var fingerprint, assignment []uint8
	list := append([]array{of(nHeader, &header), of(nFingerprint, &fingerprint), of(nAssignment, &assignment)},
		s.arrays(f.Has(nEdgeFeatures), f.Has(nTargets))...)
	for _, a := range list {
		if err := a.read(f); err != nil {
			return nil, nil, err
		}
	}
	s.Fingerprint, s.Assignment = string(fingerprint), string(assignment)
	return s, header, nil
}

// fill sets the fields that the header contains.
func (s *Shard) fill(h []int64) {
	s.Parts, s.Rank, s.Vertices, s.Directed = int(h[hParts]), int(h[hRank]), h[hVertices], h[hDirected] != 0
	s.Classes, s.FeatureDim = int(h[hClasses]), int(h[hFeatureDim])
	s.TrainTotal, s.ValTotal, s.TestTotal = h[hTrain], h[hVal], h[hTest]
	s.MajorityTest = math.Float64frombits(uint64(h[hMajority]))
	s.Features.Rows, s.Features.Dim = len(s.Own), s.FeatureDim
}
