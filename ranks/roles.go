package ranks

import (
	"runtime"
	"slices"

	"siafu/ranks/world"
)

// roles assigns a role to each member of a run's world: parts of the graph first, then
// servers.
type roles struct {
	view           world.View
	Graph, Servers int
	Stages         int // of a pipeline, 1 without pipelines: member d*Stages+s has stage s of pipeline d
	rank           int
	threads        int // workers of a part
	rankThreads    int // workers of a rank, for all its parts
}

func assign(c Config, v world.View, w world.Comm) (roles, error) {
	var err error
	if v.Parts == 0 { // every rank of the world has one part
		if v, err = c.View(w.Size()); err != nil {
			return roles{}, err
		}
	}
	r := roles{view: v, Graph: v.Parts, Servers: v.Servers, Stages: max(c.Pipelining().Stages, 1), rank: w.Rank()}
	r.rankThreads = threads(c, v, w)
	here := v.Carried(v.Rank(r.rank))
	r.threads = share(r.rankThreads, slices.Index(here, r.rank), len(here))
	r.rankThreads = max(r.rankThreads, len(here))
	return r, nil
}

// threads returns the number of workers of each graph rank: the requested number, else this
// host's processors divided among its graph ranks.
func threads(c Config, v world.View, w world.Comm) int {
	if c.Threads > 0 {
		return c.Threads
	}
	hosts, here, seen := w.Hosts(), 0, make([]bool, v.Started())
	for part := range v.Parts {
		if r := v.Rank(part); !seen[r] && hosts[part] == hosts[w.Rank()] {
			seen[r] = true
			here++
		}
	}
	return max(runtime.NumCPU()/max(here, 1), 1)
}

// share returns the number of a rank's workers for its k-th part, at least 1.
func share(workers, k, parts int) int {
	mine := workers / parts
	if k < workers%parts {
		mine++
	}
	return max(mine, 1)
}

// isServer reports whether this member is a parameter server.
func (r roles) isServer() bool { return r.rank >= r.Graph }

// partitions returns the number of partitions of the graph, and ownPartition the one of this graph rank: each
// graph rank has its own, or each pipeline.
func (r roles) partitions() int   { return r.Graph / max(r.Stages, 1) }
func (r roles) ownPartition() int { return r.rank / max(r.Stages, 1) }

// stageRanks returns the members with a stage of each pipeline, ascending.
func (r roles) stageRanks(stage int) (list []int) {
	for d := range r.partitions() {
		list = append(list, d*r.Stages+stage)
	}
	return list
}

// pipelineRanks returns the members of a pipeline, by stage.
func (r roles) pipelineRanks(d int) (list []int) {
	for s := range r.Stages {
		list = append(list, d*r.Stages+s)
	}
	return list
}

// clients returns the number of parts that use the k-th server.
func (r roles) clients(k int) int { return (r.Graph - k + r.Servers - 1) / r.Servers }

func (r roles) name() string {
	if r.isServer() {
		return "server"
	}
	return "graph"
}

// graphRanks returns the members that own a partition.
func (r roles) graphRanks() []int { return world.All(r.Graph) }
