package ranks

import (
	"encoding/json"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
)

// schemaKey is the metadata key of the graph.Schema of the training dataset, absent if that is
// plain.
const schemaKey = "data"

// Schema reads the schema of the dataset on which the model of a run folder was trained.
// Errors have kind Missing if there is none, Data or IO.
func Schema(runDir string) (*graph.Schema, error) {
	path := modelFile(runDir)
	_, md, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	m, err := describedBy(path, md)
	if err != nil {
		return nil, err
	}
	return schemaOf(path, md, m)
}

// decodeSchema decodes the schema in the metadata of the file at path.
func decodeSchema(op, path string, md map[string]string) (*graph.Schema, error) {
	s := &graph.Schema{Dataset: md["dataset"]}
	if text, ok := md[schemaKey]; ok {
		err := json.Unmarshal([]byte(text), s)
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			return nil, fault.New(fault.Data, op, path, "its metadata %q is not a valid schema: %v", schemaKey, err).
				Then("use the model.safetensors of a run folder")
		}
	}
	return s, nil
}

// schemaOf returns the schema in the metadata of the file at path, which describes m.
func schemaOf(path string, md map[string]string, m *loadedModel) (*graph.Schema, error) {
	s, err := decodeSchema("predict", path, md)
	if err != nil {
		return nil, err
	}
	s.Classes = m.Dims[len(m.Dims)-1]
	if s.ClassNames != nil && len(s.ClassNames) != s.Classes {
		return nil, fault.New(fault.Data, "predict", path, "its metadata names %d of %d classes", len(s.ClassNames), s.Classes).
			Then("use the model.safetensors of a run folder")
	}
	if n := s.Features(); n > 0 && n != m.Dims[0] {
		return nil, fault.New(fault.Data, "predict", path, "its columns have %d features, but its network has %d", n, m.Dims[0]).
			Then("use the model.safetensors of a run folder")
	}
	if graph.BadScaling(s.TargetScaling, s.Task, s.Classes) {
		return nil, fault.New(fault.Data, "predict", path, "its metadata scales the targets by %v, which does not fit %d columns of the "+
			"task %s", s.TargetScaling, s.Classes, s.TaskName()).
			Then("use the model.safetensors of a run folder")
	}
	return s, nil
}

// suits fails if a network cannot predict on a dataset folder: it has other features or
// classes than the training dataset.
func suits(data string, meta *graph.Meta, m *loadedModel, s *graph.Schema) error {
	if m.Dims[0] != meta.FeatureDim {
		return fault.New(fault.Data, "predict", data,
			"it has %d features and %d classes, but the model was trained on %d features and %d classes",
			meta.FeatureDim, meta.Classes, m.Dims[0], s.Classes).
			Then("predict on the dataset %q or a similar one; import a table with --like RUN", s.Dataset)
	}
	if m.Design.Score != "" && (meta.Relations == nil || meta.Relations.Scored() != m.Design.ScoreRelations) {
		return fault.New(fault.Data, "predict", data, "it does not have the %d relations that the model scores", m.Design.ScoreRelations).
			Then("predict on the dataset %q or a similar one", s.Dataset)
	}
	return s.Fits("predict", data, meta, edgeUse(m.spec()))
}

// inputsSuit fails if the import gave the dataset other features or edges than those that
// the weights at path were trained on, whose metadata is md. Files of other programs record
// neither and pass.
func (r *opener) inputsSuit(op, path string, md map[string]string) error {
	if md["model"] == "" {
		return nil
	}
	s, err := decodeSchema(op, path, md)
	if err != nil {
		return err
	}
	return s.InputsFit(op, r.data, r.meta, edgeUse(r.net))
}

// edgeUse returns how a network uses edges.
func edgeUse(s model.Spec) graph.EdgeUse {
	return graph.EdgeUse{Edges: s.Propagates(), Weights: s.Weighs(), Features: s.EdgeDim() > 0}
}
