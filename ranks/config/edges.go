package config

import "siafu/kernels/model"

// Values of --memory edges=VALUE.
const (
	AutoEdges  = "auto"
	PlainEdges = "plain"
	CodedEdges = "coded"
)

// CanCodeEdges reports whether the columns of edges of a run with this network may be coded.
func (c *Config) CanCodeEdges(net model.Spec) bool {
	coded := *c
	coded.Edges = CodedEdges
	s := situation{Config: &coded, net: net}
	for _, one := range conflicts {
		if one.a.name == codesEdges.name && one.b.holds(s) {
			return false
		}
	}
	return true
}
