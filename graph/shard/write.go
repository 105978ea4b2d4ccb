package shard

import (
	"math"
	"path/filepath"
	"strconv"

	"siafu/graph/arrayfile"
	"siafu/graph/mapped"
)

// Kind is the kind of arrayfile that a shard is.
const Kind = "shard"

// Names of the arrays of a shard's file.
const (
	nHeader        = "header" // [headerLen] int64, in the order below
	nFingerprint   = "fingerprint"
	nAssignment    = "assignment"
	nOwn           = "own"
	nGhosts        = "ghosts"
	nGhostStart    = "ghost_start"
	nSendStart     = "send_start"
	nSendRows      = "send_rows"
	nInOffsets     = "in_offsets"
	nInCols        = "in_cols"
	nInOwnEnd      = "in_own_end"
	nInDegree      = "in_degree"
	nOutDegree     = "out_degree"
	nDense         = "features"         // [own x dim], where features are dense
	nSparseOffsets = "features_offsets" // the next three where they are sparse
	nSparseCols    = "features_cols"
	nSparseVals    = "features_vals"
	nLabels        = "labels"
	nSplit         = "split"
)

// Places in the header.
const (
	hParts = iota
	hRank
	hVertices
	hDirected
	hClasses
	hFeatureDim
	hTrain
	hVal
	hTest
	hMajority // bits of a float64
	headerLen
)

// Path is the file of a rank's shard in a dataset folder.
func Path(dir string, parts, rank int) string {
	return filepath.Join(dir, "parts", strconv.Itoa(parts), strconv.Itoa(rank)+".part")
}

// Write writes s to path, under a temporary name first. Faults have kind IO.
func Write(path string, s *Shard) error {
	w, err := arrayfile.Create(path, Kind)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, put := range []func(*arrayfile.Writer, *Shard) error{putHeader, putGraph, putFeatures, putTargets} {
		if err := put(w, s); err != nil {
			return err
		}
	}
	return w.Commit()
}

func putHeader(w *arrayfile.Writer, s *Shard) error {
	h := make([]int64, headerLen)
	h[hParts], h[hRank], h[hVertices] = int64(s.Parts), int64(s.Rank), s.Vertices
	if s.Directed {
		h[hDirected] = 1
	}
	h[hClasses], h[hFeatureDim] = int64(s.Classes), int64(s.FeatureDim)
	h[hTrain], h[hVal], h[hTest] = s.TrainTotal, s.ValTotal, s.TestTotal
	h[hMajority] = int64(math.Float64bits(s.MajorityTest))
	if err := arrayfile.Put(w, nHeader, h); err != nil {
		return err
	}
	if err := arrayfile.Put(w, nFingerprint, []byte(s.Fingerprint)); err != nil {
		return err
	}
	return arrayfile.Put(w, nAssignment, []byte(s.Assignment))
}

func putGraph(w *arrayfile.Writer, s *Shard) error {
	if err := putAll(w, []named[int64]{
		{nGhostStart, s.GhostStart}, {nSendStart, s.SendStart},
		{nInOffsets, s.In.Offsets}, {nInOwnEnd, s.InOwnEnd},
	}); err != nil {
		return err
	}
	return putAll(w, []named[uint32]{
		{nOwn, s.Own}, {nGhosts, s.Ghosts}, {nSendRows, s.SendRows}, {nInCols, s.In.Cols},
		{nInDegree, s.InDegree}, {nOutDegree, s.OutDegree},
	})
}

func putFeatures(w *arrayfile.Writer, s *Shard) error {
	f := s.Features.Sparse
	if f == nil {
		return arrayfile.Put(w, nDense, s.Features.Dense)
	}
	if err := arrayfile.Put(w, nSparseOffsets, f.Offsets); err != nil {
		return err
	}
	if err := arrayfile.Put(w, nSparseCols, f.Cols); err != nil {
		return err
	}
	return arrayfile.Put(w, nSparseVals, f.Vals)
}

func putTargets(w *arrayfile.Writer, s *Shard) error {
	if err := arrayfile.Put(w, nLabels, s.Labels); err != nil {
		return err
	}
	return arrayfile.Put(w, nSplit, s.Split)
}

type named[T mapped.Elem] struct {
	name string
	v    []T
}

func putAll[T mapped.Elem](w *arrayfile.Writer, list []named[T]) error {
	for _, a := range list {
		if err := arrayfile.Put(w, a.name, a.v); err != nil {
			return err
		}
	}
	return nil
}
