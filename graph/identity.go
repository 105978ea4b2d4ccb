package graph

import "fmt"

// Identity returns the properties that identify a dataset to a network trained on it: shapes,
// the sizes of the splits, and the checksums of the files. Names of vertices and classes are
// not included. Identity reads only meta.json.
func (m *Meta) Identity() map[string]string {
	direction := "undirected"
	if m.Directed {
		direction = "directed"
	}
	features := denseFile
	if m.FeatureKind == "sparse" {
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
	if m.EdgeDim > 0 {
		list[edgeFile] = m.Files[edgeFile].describe()
	}
	switch m.Task {
	case MultiClass:
	case Links:
		list["task"], list[linkFile] = m.Task, m.Files[linkFile].describe()
	default:
		list["task"], list[targetFile] = m.Task, m.Files[targetFile].describe()
	}
	return list
}

func (f FileInfo) describe() string {
	return fmt.Sprintf("%d bytes with CRC-32C %s", f.Bytes, f.CRC32C)
}
