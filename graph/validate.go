package graph

import (
	"math"
	"slices"

	"siafu/internal/fault"
)

// maxVertices is the number of distinct uint32 ids. With at most maxFeatures columns, the
// number of a dataset's feature values fits into 63 bits.
const (
	maxVertices = 1<<32 - 1
	maxFeatures = 1<<31 - 1
)

// MaxEdgeDim is the maximum number of features of an edge.
const MaxEdgeDim = 1 << 12

const opWrite = "write dataset"

// invalid returns a fault in the content that an importer passed.
func invalid(remedy, format string, args ...any) error {
	return fault.New(fault.Data, opWrite, "", format, args...).Then("%s", remedy)
}

// validate checks a content before Write writes any of it. Edges are checked while the CSR is
// built.
func (c *Content) validate() error {
	if c.Vertices < 1 || c.Vertices > maxVertices {
		return invalid("a dataset has 1 to 4294967295 vertices", "there are %d vertices", c.Vertices)
	}
	if err := c.validateLengths(); err != nil {
		return err
	}
	if f, ok := c.Edges.(FeaturedSource); ok && (f.EdgeDim() < 0 || f.EdgeDim() > MaxEdgeDim) {
		return invalid("leave some out with --edge-features", "edges have %d features, the maximum is %d", f.EdgeDim(), MaxEdgeDim)
	}
	for _, step := range []func() error{c.validateRelations, c.validateLabels, c.validateClasses, c.validateLinks, c.Features.validate} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Content) validateLengths() error {
	n := c.Vertices
	if err := c.targetLabels(); err != nil {
		return err
	}
	for _, l := range []struct {
		what string
		got  int64
	}{
		{"labels", int64(len(c.Labels))},
		{"split values", int64(len(c.Split))},
		{"feature rows", int64(c.Features.Rows)},
	} {
		if l.got != n {
			return invalid("give one for each vertex", "there are %d %s for %d vertices", l.got, l.what, n)
		}
	}
	if ids := c.IDs; ids != nil {
		got := int64(len(ids.Ints))
		if ids.Ints == nil {
			got = int64(len(ids.Offsets)) - 1
		}
		if got != n {
			return invalid("give one for each vertex", "there are %d ids for %d vertices", got, n)
		}
	}
	return nil
}

// MaxClasses returns the maximum number of classes of a dataset with N vertices. Memory is
// allocated per class, so a single label or header field must not be able to set an arbitrary
// number.
func MaxClasses(vertices int64) int { return int(max(vertices, 1<<17)) }

// validateLabels also sets the number of classes. It is 0 if no vertex has a label, as in a
// graph for prediction.
func (c *Content) validateLabels() error {
	most := Unlabelled
	for v, l := range c.Labels {
		if l < Unlabelled || c.Classes > 0 && int(l) >= c.Classes {
			return invalid("use labels from 0, and -1 for none", "vertex %d has label %d of %d classes", v, l, c.Classes)
		}
		most = max(most, l)
		switch s := c.Split[v]; {
		case s > SplitTest:
			return invalid("use 0 none, 1 train, 2 validation, 3 test", "vertex %d has split value %d", v, s)
		case s != SplitNone && l == Unlabelled && c.Task != Links:
			return invalid("leave vertices without a label out of the split", "vertex %d is in split %d and has no label", v, s)
		}
	}
	if c.Classes == 0 {
		c.Classes = int(most) + 1
	}
	return nil
}

// validateClasses requires the number of classes that validateLabels sets.
func (c *Content) validateClasses() error {
	if most := MaxClasses(c.Vertices); c.Classes > most {
		return invalid("number the classes from 0", "there are %d classes for %d vertices, the maximum is %d", c.Classes, c.Vertices, most)
	}
	if c.ClassNames != nil && len(c.ClassNames) != c.Classes {
		return invalid("name every class or none", "there are %d class names for %d classes", len(c.ClassNames), c.Classes)
	}
	return nil
}

func (f *Features) validate() error {
	if f.Dim < 1 || f.Dim > maxFeatures {
		return invalid("give at least one feature a vertex and at most 2147483647", "features have dimension %d", f.Dim)
	}
	if f.Sparse != nil {
		return f.Sparse.validate(f.Rows, f.Dim)
	}
	if f.Draw != nil || f.NonZeros != nil {
		return nil // finite by contract
	}
	if n := len(f.Dense) + len(f.Half); n != f.Rows*f.Dim {
		return invalid("check the feature dimension", "there are %d feature values for %d rows of %d", n, f.Rows, f.Dim)
	}
	if i := slices.IndexFunc(f.Dense, NotFinite); i >= 0 {
		return invalid("replace it with a finite number", "feature %d of vertex %d is %v", i%f.Dim, i/f.Dim, f.Dense[i])
	}
	if i := slices.IndexFunc(f.Half, func(x BF16) bool { return NotFinite(x.Float32()) }); i >= 0 {
		return invalid("replace it with a finite number", "feature %d of vertex %d is %v", i%f.Dim, i/f.Dim, f.Half[i].Float32())
	}
	return nil
}

func (s *SparseRows) validate(rows, dim int) error {
	if len(s.Offsets) != rows+1 || len(s.Vals) != len(s.Cols) || badOffset(s.Offsets, int64(len(s.Cols))) >= 0 {
		return invalid("check the row offsets", "sparse features have %d offsets, %d columns and %d values for %d rows",
			len(s.Offsets), len(s.Cols), len(s.Vals), rows)
	}
	for v := range rows {
		seen := int64(-1)
		for i := s.Offsets[v]; i < s.Offsets[v+1]; i++ {
			c := int64(s.Cols[i])
			switch {
			case c >= int64(dim):
				return invalid("check the feature dimension", "vertex %d has feature column %d of %d", v, c, dim)
			case c <= seen:
				return invalid("sort the columns of a row and merge duplicates", "vertex %d has feature column %d after %d", v, c, seen)
			case NotFinite(s.Vals[i]):
				return invalid("replace it with a finite number", "feature %d of vertex %d is %v", c, v, s.Vals[i])
			}
			seen = c
		}
	}
	return nil
}

// NotFinite reports whether x is infinite or NaN.
func NotFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// BadWeight returns the index of the first weight that is not finite or not above 0, or -1 if
// all weights are valid.
func BadWeight(weights []float32) int {
	return slices.IndexFunc(weights, func(w float32) bool { return !goodWeight(w) })
}

func goodWeight(w float32) bool { return w > 0 && w <= math.MaxFloat32 }
