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
	"siafu/internal/mapped"
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

// reader reads the arrays of a file and keeps the first error.
type reader struct {
	f   *arrayfile.File
	err error
}

func get[T mapped.Elem](r *reader, name string) []T {
	if r.err != nil {
		return nil
	}
	var v []T
	v, r.err = arrayfile.Get[T](r.f, name)
	return v
}

// read fills a shard with the arrays of f without verifying them. It returns the header
// separately because the header may have any length.
func read(f *arrayfile.File) (*Shard, []int64, error) {
	r := &reader{f: f}
	h := get[int64](r, nHeader)
	s := &Shard{
		Fingerprint: string(get[uint8](r, nFingerprint)), Assignment: string(get[uint8](r, nAssignment)),
		Own: get[uint32](r, nOwn), Ghosts: get[uint32](r, nGhosts), GhostStart: get[int64](r, nGhostStart),
		SendStart: get[int64](r, nSendStart), SendRows: get[uint32](r, nSendRows),
		In:       graph.CSR{Offsets: get[int64](r, nInOffsets), Cols: get[uint32](r, nInCols)},
		InOwnEnd: get[int64](r, nInOwnEnd),
		InDegree: get[uint32](r, nInDegree), OutDegree: get[uint32](r, nOutDegree),
		Labels: get[int32](r, nLabels), Split: get[uint8](r, nSplit),
	}
	if s.Weighted = f.Has(nWeights); s.Weighted {
		s.Weights, s.InStrength, s.OutStrength = get[float32](r, nWeights), get[float32](r, nInStrength), get[float32](r, nOutStrength)
	}
	if f.Has(nEdgeFeatures) {
		s.EdgeFeatures, s.EdgeMeans = get[float32](r, nEdgeFeatures), get[float32](r, nEdgeMeans)
	}
	readFeatures(r, s)
	if f.Has(nTargets) {
		s.Targets = get[float32](r, nTargets)
	}
	return s, h, r.err
}

// fill sets the fields that the header contains.
func (s *Shard) fill(h []int64) {
	s.Parts, s.Rank, s.Vertices, s.Directed = int(h[hParts]), int(h[hRank]), h[hVertices], h[hDirected] != 0
	s.Classes, s.FeatureDim = int(h[hClasses]), int(h[hFeatureDim])
	s.TrainTotal, s.ValTotal, s.TestTotal = h[hTrain], h[hVal], h[hTest]
	s.MajorityTest = math.Float64frombits(uint64(h[hMajority]))
	s.Features.Rows, s.Features.Dim = len(s.Own), s.FeatureDim
}

func readFeatures(r *reader, s *Shard) {
	if !r.f.Has(nSparseOffsets) {
		s.Features.Dense = get[float32](r, nDense)
		return
	}
	s.Features.Sparse = &graph.SparseRows{
		Offsets: get[int64](r, nSparseOffsets),
		Cols:    get[uint32](r, nSparseCols),
		Vals:    get[float32](r, nSparseVals),
	}
}
