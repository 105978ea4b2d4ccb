package predict

import (
	"siafu/internal/catalog"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Off is the value of --predict without predictions.
const Off = "off"

// entry names and describes a choice.
type entry = catalog.Entry

// kind describes predictions of ghost rows. A new kind is one kind in a file of its own and a
// line in kinds.
type kind struct {
	entry
	// kept returns the number of examples.kept for rows of a width, if the kind needs any.
	kept func(width int) int
	// cell is that of a recurrent predictor, which has no model. nil: model is fitted.
	cell    kernels.Cell
	attends bool // its gates have attention over neighbours, not their mean
	// model allocates a model for at most the given number of rows of at most the given width.
	model func(width, rows int, team *kernels.Team, a *mapped.Arena) model
}

// model predicts rows of one layer and age. It is fitted again before each use.
type model interface {
	// fit learns from own rows.
	fit(x examples) Fallback
	// apply sets dst [n x width] to the prediction from stale rows [n x width]. dst must not overlap
	// them.
	apply(dst, rows kernels.Mat)
	// affine returns the prediction as a map of stale rows of a width, as in Options.Maps.
	affine(width int) kernels.Mat
}

// examples are own rows [n x width] of one layer: of the current epoch, and of the epoch of the
// ghosts.
type examples struct {
	now, stale kernels.Mat
	kept       []float32 // what a fit keeps for later ones with the same stale rows; zeros at first
}

var kinds = []*kind{&transferKind, &lstmGCNKind, &gruGCNKind, &lstmGATKind}

// Choices describes all values of --predict.
func Choices() []catalog.Entry {
	return append(catalog.Entries(kinds, nil), momentumChoice, entry{Name: Off, Help: "stale rows are used as they are"}.Choice())
}

// Valid reports whether name is a value of --predict, with its parameter.
func Valid(name string) bool {
	if _, ok := MomentumShare(name); ok || name == "" || name == Off {
		return true
	}
	_, ok := catalog.Find(kinds, name)
	return ok
}

// Remedy returns what to set in place of an invalid value of --predict.
func Remedy(name string) string {
	if name == "linear" {
		return "set --predict transfer, or momentum:B with --batch history:N: the extrapolation of two rows is no longer available"
	}
	return "it must be one of " + Usage() + "; B is above 0 and at most 1"
}

// Usage lists the values of --predict.
func Usage() string { return catalog.List(catalog.Forms(Choices()), "or") }

// Learns reports whether a kind is a recurrent predictor, which Train trains.
func Learns(name string) bool {
	k, ok := catalog.Find(kinds, name)
	return ok && k.cell != nil
}

// Fallback is a reason to use stale rows.
type Fallback int

const (
	none      Fallback = iota
	FewRows            // fewer sampled own rows than twice their width
	Singular           // the rows do not determine the prediction
	NotFinite          // a row has a number that is not finite
	NotBetter          // the error on held-out own rows is not below that of stale rows
	Fallbacks          // number of values
)

// String describes the reason.
func (f Fallback) String() string {
	return [...]string{"", "fewer sampled own rows than twice their width", "a singular matrix", "rows that are not finite",
		"no gain on held-out rows"}[f]
}
