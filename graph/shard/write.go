package shard

import (
	"math"
	"path/filepath"
	"strconv"

	"siafu/internal/arrayfile"
)

// Kind is the arrayfile kind of a shard.
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
	nWeights       = "in_weights" // this and the next two only if edges have weights
	nInStrength    = "in_strength"
	nOutStrength   = "out_strength"
	nEdgeFeatures  = "in_features" // this and the next one only if edges have features
	nEdgeMeans     = "in_feature_means"
	nDense         = "features"         // [own x dim], only if features are dense
	nSparseOffsets = "features_offsets" // this and the next two only if features are sparse
	nSparseCols    = "features_cols"
	nSparseVals    = "features_vals"
	nLabels        = "labels"
	nSplit         = "split"
	nTargets       = "targets" // only if the dataset has targets
)

// Indexes into the header.
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

// Folder returns the default folder of a dataset's shards for parts ranks.
func Folder(dir string, parts int) string { return filepath.Join(dir, "parts", strconv.Itoa(parts)) }

// Path returns the path of a rank's shard in the default folder.
func Path(dir string, parts, rank int) string { return filepath.Join(Folder(dir, parts), name(rank)) }

func name(rank int) string { return strconv.Itoa(rank) + ".part" }

// Write writes s to path atomically, through a temporary file. Faults have kind IO.
func Write(path string, s *Shard) error {
	w, err := arrayfile.Create(path, Kind)
	if err != nil {
		return err
	}
	defer w.Abort()
	putHeader(w, s)
	putGraph(w, s)
	putFeatures(w, s)
	arrayfile.Put(w, nLabels, s.Labels)
	arrayfile.Put(w, nSplit, s.Split)
	if s.Targets != nil {
		arrayfile.Put(w, nTargets, s.Targets)
	}
	return w.Commit() // returns the first error of all writes
}

func putHeader(w *arrayfile.Writer, s *Shard) {
	h := make([]int64, headerLen)
	h[hParts], h[hRank], h[hVertices] = int64(s.Parts), int64(s.Rank), s.Vertices
	if s.Directed {
		h[hDirected] = 1
	}
	h[hClasses], h[hFeatureDim] = int64(s.Classes), int64(s.FeatureDim)
	h[hTrain], h[hVal], h[hTest] = s.TrainTotal, s.ValTotal, s.TestTotal
	h[hMajority] = int64(math.Float64bits(s.MajorityTest))
	arrayfile.Put(w, nHeader, h)
	arrayfile.Put(w, nFingerprint, []byte(s.Fingerprint))
	arrayfile.Put(w, nAssignment, []byte(s.Assignment))
}

func putGraph(w *arrayfile.Writer, s *Shard) {
	arrayfile.Put(w, nGhostStart, s.GhostStart)
	arrayfile.Put(w, nSendStart, s.SendStart)
	arrayfile.Put(w, nInOffsets, s.In.Offsets)
	arrayfile.Put(w, nInOwnEnd, s.InOwnEnd)
	arrayfile.Put(w, nOwn, s.Own)
	arrayfile.Put(w, nGhosts, s.Ghosts)
	arrayfile.Put(w, nSendRows, s.SendRows)
	arrayfile.Put(w, nInCols, s.In.Cols)
	arrayfile.Put(w, nInDegree, s.InDegree)
	arrayfile.Put(w, nOutDegree, s.OutDegree)
	if s.Weighted {
		arrayfile.Put(w, nWeights, s.Weights)
		arrayfile.Put(w, nInStrength, s.InStrength)
		arrayfile.Put(w, nOutStrength, s.OutStrength)
	}
	if s.EdgeDim > 0 {
		arrayfile.Put(w, nEdgeFeatures, s.EdgeFeatures)
		arrayfile.Put(w, nEdgeMeans, s.EdgeMeans)
	}
}

func putFeatures(w *arrayfile.Writer, s *Shard) {
	f := s.Features.Sparse
	if f == nil {
		arrayfile.Put(w, nDense, s.Features.Dense)
		return
	}
	arrayfile.Put(w, nSparseOffsets, f.Offsets)
	arrayfile.Put(w, nSparseCols, f.Cols)
	arrayfile.Put(w, nSparseVals, f.Vals)
}
