package shard

import (
	"math"
	"path/filepath"
	"strconv"

	"siafu/internal/arrayfile"
	"siafu/internal/mapped"
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
	nWeights       = "in_weights" // this array and the next two exist only if edges have weights
	nInStrength    = "in_strength"
	nOutStrength   = "out_strength"
	nEdgeFeatures  = "in_features" // this array and the next exist only if edges have features
	nEdgeMeans     = "in_feature_means"
	nDense         = "features"         // [own x dim], exists only if features are dense
	nSparseOffsets = "features_offsets" // this array and the next two exist only if features are sparse
	nSparseCols    = "features_cols"
	nSparseVals    = "features_vals"
	nLabels        = "labels"
	nSplit         = "split"
	nTargets       = "targets" // exists only if the dataset has targets
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
	for _, a := range s.arrays(s.EdgeDim > 0, s.Targets != nil) {
		a.write(w)
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

// array reads and writes one array of a shard's file.
type array struct {
	write func(w *arrayfile.Writer)
	read  func(f *arrayfile.File) error
}

func of[T mapped.Elem](name string, v *[]T) array {
	return array{
		write: func(w *arrayfile.Writer) { arrayfile.Put(w, name, *v) },
		read:  func(f *arrayfile.File) (err error) { *v, err = arrayfile.Get[T](f, name); return err },
	}
}

// arrays lists the arrays of the shard in the order of the file, after the header. featured and
// targets report whether edges have features and vertices have targets.
func (s *Shard) arrays(featured, targets bool) []array {
	list := []array{
		of(nGhostStart, &s.GhostStart), of(nSendStart, &s.SendStart),
		of(nOwn, &s.Own), of(nGhosts, &s.Ghosts), of(nSendRows, &s.SendRows),
		of(nInDegree, &s.InDegree), of(nOutDegree, &s.OutDegree),
	}
	if s.Weighted {
		list = append(list, of(nInStrength, &s.InStrength), of(nOutStrength, &s.OutStrength))
	}
	if featured {
		list = append(list, of(nEdgeMeans, &s.EdgeMeans))
	}
	if s.Whole {
		return list
	}
	list = append(list, of(nInOffsets, &s.In.Offsets), of(nInOwnEnd, &s.InOwnEnd), of(nInCols, &s.In.Cols))
	if s.Weighted {
		list = append(list, of(nWeights, &s.Weights))
	}
	if featured {
		list = append(list, of(nEdgeFeatures, &s.EdgeFeatures))
	}
	if x := s.Features.Sparse; x != nil {
		list = append(list, of(nSparseOffsets, &x.Offsets), of(nSparseCols, &x.Cols), of(nSparseVals, &x.Vals))
	} else {
		list = append(list, of(nDense, &s.Features.Dense))
	}
	list = append(list, of(nLabels, &s.Labels), of(nSplit, &s.Split))
	if targets {
		list = append(list, of(nTargets, &s.Targets))
	}
	return list
}
