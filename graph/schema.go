package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"siafu/internal/fault"
)

// Schema describes the features and labels of a dataset. A network trained on the dataset
// requires the same schema of other datasets.
type Schema struct {
	Task       string   `json:"task,omitempty"`                    // empty: MultiClass
	ClassNames []string `json:"classes,omitempty"`                 // nil: classes have only numbers
	Normalized bool     `json:"features_row_normalized,omitempty"` // each feature row is divided by its sum
	// TargetScaling is the scaling of the targets on which the network was trained.
	TargetScaling []Scaling `json:"target_scaling,omitempty"`
	Table         *Table    `json:"table,omitempty"` // nil: the dataset was not imported from a table
	// EdgeImport records how the import read edges; nil if unknown. Directed and Weighted are
	// copied from Meta, and only if EdgeImport is set.
	EdgeImport *EdgeImport `json:"edge_import,omitempty"`
	Directed   bool        `json:"directed,omitempty"`
	Weighted   bool        `json:"weighted,omitempty"`
	// Relations has kinds and relations without numbers of vertices and edges; nil: the graph is not relational.
	Relations *Relations `json:"relational,omitempty"`
	// Dataset is the source of the schema, for messages.
	Dataset string `json:"-"`
	Classes int    `json:"-"`
}

// Schema returns the schema of the dataset.
func (m *Meta) Schema() *Schema {
	s := &Schema{ClassNames: m.ClassNames, Normalized: m.Normalized, TargetScaling: m.TargetScaling, Table: m.Table,
		Relations: m.Relations.schema(), Dataset: m.Name, Classes: m.Classes}
	if m.Task != MultiClass {
		s.Task = m.Task
	}
	if m.EdgeImport != nil {
		s.EdgeImport, s.Directed, s.Weighted = m.EdgeImport, m.Directed, m.Weighted
	}
	return s
}

// TaskName returns the task of the labels, never empty.
func (s *Schema) TaskName() string { return cmp.Or(s.Task, MultiClass) }

// Trains returns a fault if no vertex has a label, so that no network can be trained on the
// dataset. dir is the dataset folder.
func (m *Meta) Trains(op, dir string) error {
	if m.Classes > 0 || m.Task == Links {
		return nil
	}
	return fault.New(fault.Data, op, dir, "no vertex has a label").
		Then("train on a dataset with labels, or hold out edges to predict with siafu holdout; " +
			"siafu predict takes a dataset without labels")
}

// Check returns an error if an import or a network cannot rely on the schema.
func (s *Schema) Check() error {
	if e := s.EdgeImport; e != nil && len(e.Ends) != 0 && len(e.Ends) != 2 {
		return fmt.Errorf("its edges have %d ends", len(e.Ends))
	}
	if !slices.Contains([]string{"", MultiClass, MultiLabel, Regression, Links}, s.Task) {
		return fmt.Errorf("its task is %q", s.Task)
	}
	if r := s.Relations; r != nil {
		if err := r.check(0, r.features()); err != nil {
			return err
		}
	}
	return s.Table.check()
}

// Features returns the number of features of the recorded columns, or 0 if there are none.
func (s *Schema) Features() int {
	switch {
	case s.Relations != nil:
		return s.Relations.features()
	case s.Table != nil:
		return s.Table.Features()
	}
	return 0
}

// IsPlain reports whether the schema has only default values: multi-class labels without names,
// and no record of the import.
func (s *Schema) IsPlain() bool {
	return s.Task == "" && s.ClassNames == nil && !s.Normalized && s.Table == nil && s.EdgeImport == nil && s.Relations == nil
}

// ClassName returns the name of a class, as Meta.ClassName does.
func (s *Schema) ClassName(class int64) string {
	m := Meta{ClassNames: s.ClassNames}
	return m.ClassName(class)
}

// likeRemedy is the remedy for a dataset whose import options differ from the training data.
const likeRemedy = "import the dataset with --like and the run folder"

// Fits returns a fault of kind Data if a network trained on schema s cannot predict on the
// dataset m in the folder dir. Labels, class names and inputs must agree. A dataset without
// labels is not compared by labels.
func (s *Schema) Fits(op, dir string, m *Meta, use EdgeUse) error {
	if err := s.labelsFit(op, dir, m); err != nil {
		return err
	}
	return s.InputsFit(op, dir, m, use)
}

// InputsFit returns a fault of kind Data if the import of m produced features or edges that
// differ from the network's training data. It does not compare properties that the model or the
// dataset does not record.
func (s *Schema) InputsFit(op, dir string, m *Meta, use EdgeUse) error {
	bad := func(why, remedy string) error { return fault.New(fault.Data, op, dir, "%s", why).Then("%s", remedy) }
	switch {
	case s.Normalized && !m.Normalized:
		return bad("its features are not normalised, but the model was trained on feature rows divided by their sums",
			"import the dataset with --normalize-features")
	case m.Normalized && !s.Normalized:
		return bad("its feature rows are divided by their sums, but the model was trained on features that are not normalised",
			"import the dataset without --normalize-features")
	}
	why := otherRelations(s.Relations, m.Relations, use.Edges)
	if why == "" {
		why = otherTable(s.Table, m.Table)
	}
	if why == "" && use.Features && s.Table != nil && m.Table != nil {
		why = otherColumns(s.Table.EdgeColumns, m.Table.EdgeColumns)
	}
	if why != "" {
		return bad(why, likeRemedy)
	}
	if why, remedy := s.otherEdges(m, use); why != "" {
		return bad(why, remedy)
	}
	return nil
}

// labelsFit compares labels and class names, as Fits does.
func (s *Schema) labelsFit(op, dir string, m *Meta) error {
	bad := func(format string, args ...any) *fault.Error { return fault.New(fault.Data, op, dir, format, args...) }
	links := s.Task == Links || m.Task == Links // link prediction has no labels to compare
	switch {
	case links:
	case m.Classes > 0 && m.Task != s.TaskName():
		return bad("its labels are for %s, the model was trained on %q for %s", m.Task, s.Dataset, s.TaskName()).
			Then("import it with labels for that task, or without labels")
	case m.Classes > s.Classes, m.Classes > 0 && s.Task != "" && m.Classes != s.Classes:
		return bad("it has %d classes, the model was trained on %d of %q", m.Classes, s.Classes, s.Dataset).
			Then("predict on that dataset or one like it")
	}
	if c := s.otherClass(m); c >= 0 && !links {
		return bad("its class %d is %q, the model's is %q", c, m.ClassName(int64(c)), s.ClassName(int64(c))).Then(likeRemedy)
	}
	return nil
}

// otherClass returns a class whose name in m differs from its name in s, or -1. Classes without
// names are not compared.
func (s *Schema) otherClass(m *Meta) int {
	if s.ClassNames == nil || m.ClassNames == nil {
		return -1
	}
	for c, name := range m.ClassNames { // m has at most as many names as s
		if s.ClassNames[c] != name {
			return c
		}
	}
	return -1
}

// otherTable returns the first difference between the conversions of two tables of vertices, or "" if there
// is none or one of them is unknown.
func otherTable(model, data *Table) string {
	if model == nil || data == nil {
		return ""
	}
	why := otherColumns(model.Columns, data.Columns)
	if why == "" && model.Missing != nil && data.Missing != nil && !slices.Equal(model.Missing, data.Missing) {
		why = fmt.Sprintf("its missing cells are %q, in the training data %q", data.Missing, model.Missing)
	}
	return why
}

// otherColumns returns the first difference between the columns of a model and the columns of a
// dataset, or "" if both were converted to the same features.
func otherColumns(model, data []Column) string {
	for i, c := range model {
		if i >= len(data) {
			return fmt.Sprintf("the model was trained on the column %q, which it does not have", c.Name)
		}
		o := data[i]
		switch {
		case c.Name != o.Name || c.Kind != o.Kind:
			return fmt.Sprintf("its column %q became %s where the model was trained on %q as %s", o.Name, o.Kind, c.Name, c.Kind)
		case c.Mean != o.Mean || c.Scale != o.Scale:
			return fmt.Sprintf("its column %q is less %.6g and divided by %.6g, the model's was less %.6g and divided by %.6g", o.Name,
				o.Mean, o.Scale, c.Mean, c.Scale)
		case o.Missing > 0 && c.Fill != nil && o.Fill != nil && *c.Fill != *o.Fill:
			return fmt.Sprintf("its column %q has %d missing numbers, filled with %.6g, the model's were filled with %.6g",
				o.Name, o.Missing, *o.Fill, *c.Fill)
		case !slices.Equal(c.Values, o.Values):
			return fmt.Sprintf("its column %q has features for %.120s, the model's for %.120s", o.Name,
				strings.Join(o.Values, ", "), strings.Join(c.Values, ", "))
		}
	}
	return ""
}

// Identity returns the properties that identify a dataset to a network trained on it: shapes,
// the sizes of the splits, and the checksums of the files. Names of vertices and classes are
// not included. Identity reads only meta.json.
func (m *Meta) Identity() map[string]string {
	direction := "undirected"
	if m.Directed {
		direction = "directed"
	}
	features := denseFile
	if m.FeatureKind == SparseFeatures {
		features = sparseFile
	}
	list := map[string]string{
		"vertices": fmt.Sprint(m.Vertices),
		"edges":    fmt.Sprintf("%d %s", m.Edges, direction),
		"features": fmt.Sprintf("%d %s", m.FeatureDim, m.FeatureKind),
		"classes":  fmt.Sprint(m.Classes),
		"split":    fmt.Sprintf("%d train, %d val, %d test", m.Train, m.Val, m.Test),
		csrFile:    m.Files[csrFile].describe(), "feature values": m.Files[features].describe(),
		labelFile: m.Files[labelFile].describe(), splitFile: m.Files[splitFile].describe(),
	}
	if m.Weighted {
		list[weightFile] = m.Files[weightFile].describe()
	}
	if m.Relations != nil {
		list[relationFile] = m.Files[relationFile].describe()
	}
	if m.EdgeDim > 0 {
		list[edgeFile] = m.Files[edgeFile].describe()
	}
	switch m.Task {
	case MultiClass:
	case Links:
		list["task"], list[linkFile] = m.Task, m.Files[linkFile].describe()
	default:
		if m.TargetScaling != nil {
			list["target scaling"] = fmt.Sprint(m.TargetScaling)
		}
		list["task"], list[targetFile] = m.Task, m.Files[targetFile].describe()
	}
	return list
}

func (f FileInfo) describe() string {
	return fmt.Sprintf("%d bytes with CRC-32C %s", f.Bytes, f.CRC32C)
}
