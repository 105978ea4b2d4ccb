package shard

import (
	"iter"
	"math"
	"path/filepath"
	"strconv"

	"siafu/graph"
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
	nDense         = "features"         // [own x dim], exists only if features are dense and float32
	nHalf          = "features_bf16"    // [own x dim], exists only if features are dense and bfloat16
	nSparseOffsets = "features_offsets" // this array and the next two exist only if features are sparse
	nSparseCols    = "features_cols"
	nSparseVals    = "features_vals"
	nLabels        = "labels"
	nSplit         = "split"
	nTargets       = "targets"      // exists only if the dataset has targets
	nRelations     = "in_relations" // exists only if the dataset is relational
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
	_, err := WriteBlocks(path, s, nil)
	return err
}

// WriteBlocks is Write for a shard that has not all arrays in memory. Each element of blocks has
// the values of InOwnEnd, In.Cols, Weights, EdgeFeatures, Relations, Features and Targets for the next own
// vertices. The arrays must be valid until the next element. s need not have these arrays, but
// In.Offsets, Features.Sparse.Offsets if features are sparse, and other than nil Features.Half if they
// are bfloat16, Relations if the dataset is relational, and Targets if it has targets. If blocks is nil, s
// has all arrays.
func WriteBlocks(path string, s *Shard, blocks iter.Seq[*Shard]) (graph.FileInfo, error) {
	w, err := arrayfile.Create(path, Kind)
	if err != nil {
		return graph.FileInfo{}, err
	}
	defer w.Abort()
	putHeader(w, s)
	featured, targets := s.EdgeDim > 0, s.Targets != nil
	for _, a := range s.arrays(featured, targets) {
		if blocks != nil && a.reserve != nil {
			a.reserve(w)
		} else {
			a.write(w)
		}
	}
	if blocks != nil {
		for block := range blocks {
			for _, a := range block.arrays(featured, targets) {
				if a.fill == nil {
					continue
				}
				if err := a.fill(w); err != nil {
					return graph.FileInfo{}, err
				}
			}
		}
	}
	if err := w.Commit(); err != nil { // the first error of all writes
		return graph.FileInfo{}, err
	}
	length, crc := w.Sum()
	return graph.FileInfo{Bytes: length, CRC32C: crc}, nil
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
	// reserve and fill write an array in blocks; nil for an array that is always written as a whole.
	reserve func(w *arrayfile.Writer)
	fill    func(w *arrayfile.Writer) error
}

func of[T mapped.Elem](name string, v *[]T) array {
	return array{
		write: func(w *arrayfile.Writer) { arrayfile.Put(w, name, *v) },
		read:  func(f *arrayfile.File) (err error) { *v, err = arrayfile.Get[T](f, name); return err },
	}
}

// inBlocks is of for an array of n() elements that WriteBlocks writes in blocks.
func inBlocks[T mapped.Elem](name string, v *[]T, n func() int) array {
	a := of(name, v)
	a.reserve = func(w *arrayfile.Writer) { arrayfile.Reserve[T](w, name, n()) }
	a.fill = func(w *arrayfile.Writer) error { return arrayfile.Fill(w, name, *v) }
	return a
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
	own := func() int { return len(s.Own) }
	edges := func() int { return int(s.In.Offsets[len(s.Own)]) }
	list = append(list, of(nInOffsets, &s.In.Offsets), inBlocks(nInOwnEnd, &s.InOwnEnd, own), inBlocks(nInCols, &s.In.Cols, edges))
	if s.Weighted {
		list = append(list, inBlocks(nWeights, &s.Weights, edges))
	}
	if featured {
		list = append(list, inBlocks(nEdgeFeatures, &s.EdgeFeatures, func() int { return edges() * s.EdgeDim }))
	}
	if s.Relations != nil {
		list = append(list, inBlocks(nRelations, &s.Relations, edges))
	}
	dense := func() int { return len(s.Own) * s.FeatureDim }
	switch x := s.Features.Sparse; {
	case x != nil:
		values := func() int { return int(x.Offsets[len(s.Own)]) }
		list = append(list, of(nSparseOffsets, &x.Offsets), inBlocks(nSparseCols, &x.Cols, values), inBlocks(nSparseVals, &x.Vals, values))
	case s.Features.Half != nil:
		list = append(list, inBlocks(nHalf, &s.Features.Half, dense))
	default:
		list = append(list, inBlocks(nDense, &s.Features.Dense, dense))
	}
	list = append(list, of(nLabels, &s.Labels), of(nSplit, &s.Split))
	if targets {
		list = append(list, inBlocks(nTargets, &s.Targets, func() int { return len(s.Own) * s.Classes }))
	}
	return list
}
