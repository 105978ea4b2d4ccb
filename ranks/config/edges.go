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
	return situation{Config: c, net: net}.suits(codesEdges)
}

// CanStream reports whether a run of a task with this network may store values in a scratch file.
func (c *Config) CanStream(net model.Spec, task string) bool {
	return situation{Config: c, net: net, task: task}.suits(streams)
}

// suits reports whether no conflict with a holds.
func (s situation) suits(a fact) bool {
	for _, one := range conflicts {
		if one.a.name == a.name && one.b.holds(s) {
			return false
		}
	}
	return true
}
