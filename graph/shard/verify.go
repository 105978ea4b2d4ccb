package shard

import (
	"siafu/graph"
	"siafu/internal/arrayfile"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// verifier verifies the content of a shard's file. Later checks rely on earlier ones: for example,
// the check of rows relies on the lengths of arrays. open and check define the order.
type verifier struct {
	s    *Shard
	path string
	task string // task of the dataset
	// relations is the number of relations of the dataset; -1: it is not relational.
	relations int
}

// open reads the shard in f, of the dataset in the folder dir, and verifies it. v.s must be closed,
// also after an error.
func (v *verifier) open(f *arrayfile.File, dir string, meta *graph.Meta, parts, rank int) error {
	s, header, err := read(f)
	v.s, v.task, v.relations = s, meta.Task, -1
	if meta.Relations != nil {
		v.relations = len(meta.Relations.Relations)
	}
	if err != nil {
		return err
	}
	if len(header) != headerLen {
		return v.bad("header: %d numbers instead of %d", len(header), headerLen)
	}
	s.fill(header)
	s.EdgeDim = meta.EdgeDim
	if err := v.identity(meta, parts, rank); err != nil {
		return err
	}
	if s.Whole {
		if err := v.whole(dir); err != nil {
			return err
		}
	}
	return v.check()
}

// whole uses the arrays of the dataset in the folder dir, and checks that the own vertices are all
// its vertices.
func (v *verifier) whole(dir string) error {
	if v.s.Parts != 1 || int64(len(v.s.Own)) != v.s.Vertices {
		return v.bad("it has no edges, and %d of %d vertices", len(v.s.Own), v.s.Vertices)
	}
	for i, u := range v.s.Own {
		if int(u) != i {
			return v.bad("%s: vertex %d at position %d of a shard without edges", nOwn, u, i)
		}
	}
	ds, err := graph.Open(dir)
	if err != nil {
		return err
	}
	v.s.files = append(v.s.files, ds)
	v.s.UseAll(ds)
	return nil
}

// bad returns a fault of kind Data about the file.
func (v *verifier) bad(format string, args ...any) error {
	return fault.New(fault.Data, opOpen, v.path, format, args...).Then(`run "siafu partition" again`)
}

func (v *verifier) check() error {
	for _, check := range []func() error{
		v.lengths, v.starts, v.vertices, v.sends, v.edges, v.degrees, v.weights, v.edgeFeatures, v.features, v.targets,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// identity checks that the file is the shard of the given rank and number of parts. It also checks
// that the shard belongs to the dataset with the given meta.json.
func (v *verifier) identity(meta *graph.Meta, parts, rank int) error {
	s := v.s
	switch {
	case s.Parts != parts:
		return v.bad("this is a shard for %d ranks, not %d", s.Parts, parts)
	case s.Rank != rank:
		return v.bad("this is the shard of rank %d, not %d", s.Rank, rank)
	case s.Fingerprint != meta.Fingerprint():
		return v.bad("dataset changed after partitioning (it is %s now, was %s)", meta.Fingerprint(), s.Fingerprint)
	case s.Vertices != meta.Vertices, s.Directed != meta.Directed, s.Classes != meta.Classes,
		s.FeatureDim != meta.FeatureDim, s.TrainTotal != meta.Train, s.ValTotal != meta.Val, s.TestTotal != meta.Test:
		return v.bad("header: counts differ from the dataset's meta.json")
	case s.Weighted != meta.Weighted:
		return v.bad("weights of edges: %t, expected %t", s.Weighted, meta.Weighted)
	case s.Vertices < 0, s.Vertices > 1<<32, s.FeatureDim < 0:
		return v.bad("header: %d vertices, %d features", s.Vertices, s.FeatureDim)
	case !(s.MajorityTest >= 0 && s.MajorityTest <= 1):
		return v.bad("header: majority accuracy %v is not a fraction", s.MajorityTest)
	}
	return nil
}

func (v *verifier) lengths() error {
	s := v.s
	targets := 0
	if v.task != graph.MultiClass {
		targets = len(s.Own) * s.Classes
	}
	n, all := len(s.Own), len(s.Own)+len(s.Ghosts)
	edges, sums, related := 0, 0, 0
	if v.relations >= 0 {
		related = len(s.In.Cols)
	}
	if s.Weighted {
		edges, sums = len(s.In.Cols), all
	}
	for _, a := range []struct {
		name      string
		got, want int
	}{
		{nGhostStart, len(s.GhostStart), s.Parts + 1}, {nSendStart, len(s.SendStart), s.Parts + 1},
		{nInOffsets, len(s.In.Offsets), n + 1}, {nInOwnEnd, len(s.InOwnEnd), n},
		{nInDegree, len(s.InDegree), all}, {nOutDegree, len(s.OutDegree), all},
		{nLabels, len(s.Labels), n}, {nSplit, len(s.Split), n},
		{nWeights, len(s.Weights), edges}, {nInStrength, len(s.InStrength), sums}, {nOutStrength, len(s.OutStrength), sums},
		{nEdgeFeatures, len(s.EdgeFeatures), len(s.In.Cols) * s.EdgeDim}, {nEdgeMeans, len(s.EdgeMeans), n * s.EdgeDim},
		{nTargets, len(s.Targets), targets}, {nRelations, len(s.Relations), related},
	} {
		if a.got != a.want {
			return v.bad("%s: %d values instead of %d", a.name, a.got, a.want)
		}
	}
	return nil
}

// starts checks the arrays that contain offsets into other arrays.
func (v *verifier) starts() error {
	s := v.s
	for _, a := range []struct {
		name   string
		starts []int64
		length int
	}{
		{nGhostStart, s.GhostStart, len(s.Ghosts)}, {nSendStart, s.SendStart, len(s.SendRows)},
		{nInOffsets, s.In.Offsets, len(s.In.Cols)},
	} {
		if err := v.monotonic(a.name, a.starts, a.length); err != nil {
			return err
		}
	}
	for _, a := range []struct {
		name   string
		starts []int64
	}{{nGhostStart, s.GhostStart}, {nSendStart, s.SendStart}} {
		if a.starts[s.Rank] != a.starts[s.Rank+1] {
			return v.bad("%s: rank %d exchanges rows with itself", a.name, s.Rank)
		}
	}
	return nil
}

// monotonic checks that starts begins with 0, ends with length and never decreases. starts must not
// be empty.
func (v *verifier) monotonic(name string, starts []int64, length int) error {
	if starts[0] != 0 {
		return v.bad("%s: begins at %d instead of 0", name, starts[0])
	}
	for i, x := range starts[1:] {
		if x < starts[i] {
			return v.bad("%s: %d at position %d after %d", name, x, i+1, starts[i])
		}
	}
	if last := starts[len(starts)-1]; last != int64(length) {
		return v.bad("%s: ends at %d, but there are %d values", name, last, length)
	}
	return nil
}

// ascending checks that ids are strictly ascending and in [lo, hi). ids[0] is at position at of the
// array called name.
func (v *verifier) ascending(name string, at int64, ids []uint32, lo, hi int64) error {
	next := lo
	for i, x := range ids {
		if int64(x) < next || int64(x) >= hi {
			return v.bad("%s: %d at position %d, expected at least %d and below %d", name, x, at+int64(i), next, hi)
		}
		next = int64(x) + 1
	}
	return nil
}

// vertices checks that the ids of own vertices and ghosts are valid and distinct. One shard does not
// show whether ghosts are ordered by owner; Assignment protects this order.
func (v *verifier) vertices() error {
	s := v.s
	// seen has one bit per vertex of the whole graph. Only pages with bits of this shard's vertices
	// are accessed.
	a := mapped.NewArena()
	defer a.Free()
	seen := mapped.Make[uint64](a, int(s.Vertices/64)+1)
	for _, list := range []struct {
		name string
		ids  []uint32
	}{{nOwn, s.Own}, {nGhosts, s.Ghosts}} {
		for i, u := range list.ids {
			if int64(u) >= s.Vertices {
				return v.bad("%s: vertex %d at position %d in a graph of %d vertices", list.name, u, i, s.Vertices)
			}
			if seen[u/64]&(1<<(u%64)) != 0 {
				return v.bad("%s: vertex %d at position %d is an own vertex or a ghost already", list.name, u, i)
			}
			seen[u/64] |= 1 << (u % 64)
		}
	}
	return nil
}

func (v *verifier) sends() error {
	s := v.s
	for q := range s.Parts {
		lo, hi := s.SendStart[q], s.SendStart[q+1]
		if err := v.ascending(nSendRows, lo, s.SendRows[lo:hi], 0, int64(len(s.Own))); err != nil {
			return err
		}
	}
	return nil
}
