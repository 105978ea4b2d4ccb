package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"siafu/graph/fault"
)

// Schema is what features and labels of a dataset mean, beside their numbers: what a
// network that was trained on it needs to know of another dataset.
type Schema struct {
	Task       string   `json:"task,omitempty"`                    // empty: MultiClass
	ClassNames []string `json:"classes,omitempty"`                 // nil: their numbers
	Normalized bool     `json:"features_row_normalized,omitempty"` // each feature row is divided by its sum
	Table      *Table   `json:"table,omitempty"`                   // nil: it was no table
	// Dataset is where the schema is from, for messages.
	Dataset string `json:"-"`
	Classes int    `json:"-"`
}

// Schema is that of the dataset.
func (m *Meta) Schema() *Schema {
	s := &Schema{ClassNames: m.ClassNames, Normalized: m.Normalized, Table: m.Table, Dataset: m.Name, Classes: m.Classes}
	if m.Task != MultiClass {
		s.Task = m.Task
	}
	return s
}

// TaskName is that of the labels, never empty.
func (s *Schema) TaskName() string { return cmp.Or(s.Task, MultiClass) }

// Trains is the fault that nothing can be trained on the dataset, whose folder is dir,
// where no vertex has a label.
func (m *Meta) Trains(op, dir string) error {
	if m.Classes > 0 || m.Task == Links {
		return nil
	}
	return fault.New(fault.Data, op, dir, "no vertex has a label").
		Then("train on a dataset with labels; siafu predict takes one without")
}

// IsPlain tells whether numbers say all.
func (s *Schema) IsPlain() bool {
	return s.Task == "" && s.ClassNames == nil && !s.Normalized && s.Table == nil
}

// ClassName is the name of a class, as Meta.ClassName.
func (s *Schema) ClassName(class int64) string {
	m := Meta{ClassNames: s.ClassNames}
	return m.ClassName(class)
}

// Fits says why a network that was trained on a dataset of schema s cannot predict on
// m, whose folder is dir: other columns or scales, other names of classes, labels
// beyond its classes. A dataset without labels has none. Kind Data.
func (s *Schema) Fits(op, dir string, m *Meta) error {
	bad := func(format string, args ...any) *fault.Error { return fault.New(fault.Data, op, dir, format, args...) }
	const remedy = "import the dataset with --like and the run folder"
	links := s.Task == Links || m.Task == Links // which have no labels to compare
	switch {
	case links:
	case m.Classes > 0 && m.Task != s.TaskName():
		return bad("its labels are for %s, the model was trained on %q for %s", m.Task, s.Dataset, s.TaskName()).Then("import it with labels of that kind, or without any")
	case m.Classes > s.Classes, m.Classes > 0 && s.Task != "" && m.Classes != s.Classes:
		return bad("it has %d classes, the model was trained on %d of %q", m.Classes, s.Classes, s.Dataset).Then("predict on that dataset or one like it")
	}
	switch {
	case s.Normalized && !m.Normalized:
		return bad("its features are as they are, and the model was trained on rows divided by their sums").Then("import the dataset with --normalize-features")
	case m.Normalized && !s.Normalized:
		return bad("its rows of features are divided by their sums, and the model was trained on features as they are").Then("import the dataset without --normalize-features")
	}
	if c := s.otherClass(m); c >= 0 && !links {
		return bad("its class %d is %q, the model's is %q", c, m.ClassName(int64(c)), s.ClassName(int64(c))).Then(remedy)
	}
	if s.Table == nil || m.Table == nil {
		return nil
	}
	if why := s.Table.differs(m.Table); why != "" {
		return bad("%s", why).Then(remedy)
	}
	return nil
}

// otherClass is a class that m has under another name than s, -1 where there is none.
// Numbers are no names.
func (s *Schema) otherClass(m *Meta) int {
	if s.ClassNames == nil || m.ClassNames == nil {
		return -1
	}
	for c, name := range m.ClassNames { // of which there are at most as many
		if s.ClassNames[c] != name {
			return c
		}
	}
	return -1
}

// differs says which column of another table became other features than in t, "" where
// all are the same.
func (t *Table) differs(other *Table) string {
	for i, c := range t.Columns {
		if i >= len(other.Columns) {
			return fmt.Sprintf("the model was trained on the column %q, which it does not have", c.Name)
		}
		o := other.Columns[i]
		switch {
		case c.Name != o.Name || c.Kind != o.Kind:
			return fmt.Sprintf("its column %q became %s where the model was trained on %q as %s", o.Name, o.Kind, c.Name, c.Kind)
		case c.Mean != o.Mean || c.Scale != o.Scale:
			return fmt.Sprintf("its column %q is less %.6g and divided by %.6g, the model's was less %.6g and divided by %.6g", o.Name, o.Mean, o.Scale, c.Mean, c.Scale)
		case !slices.Equal(c.Values, o.Values):
			return fmt.Sprintf("its column %q has features for %.120s, the model's for %.120s", o.Name, strings.Join(o.Values, ", "), strings.Join(c.Values, ", "))
		}
	}
	return ""
}
