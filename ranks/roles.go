package ranks

import (
	"runtime"

	"siafu/ranks/world"
)

// roles says what each rank of a world does: graph ranks first, servers after
// them.
type roles struct {
	Graph, Servers int
	rank           int
	threads        int // workers of a rank
}

func assign(c Config, w world.Comm) (roles, error) {
	graphRanks, servers, err := c.Roles(w.Size())
	if err != nil {
		return roles{}, err
	}
	return roles{
		Graph: graphRanks, Servers: servers,
		rank:    w.Rank(),
		threads: threads(c, w, graphRanks),
	}, nil
}

// threads is the number of workers of each graph rank: what was asked for,
// else this host's processors shared by the graph ranks on it.
func threads(c Config, w world.Comm, graph int) int {
	if c.Threads > 0 {
		return c.Threads
	}
	hosts, here := w.Hosts(), 0
	for r := range graph {
		if hosts[r] == hosts[w.Rank()] {
			here++
		}
	}
	return max(runtime.NumCPU()/max(here, 1), 1)
}

// isServer tells whether this rank holds weights.
func (r roles) isServer() bool { return r.rank >= r.Graph }

// clients is how many graph ranks talk to the k-th server.
func (r roles) clients(k int) int { return (r.Graph - k + r.Servers - 1) / r.Servers }

// name is the role as a report calls it.
func (r roles) name() string {
	if r.isServer() {
		return "server"
	}
	return "graph"
}

// graphRanks are the ranks that own a partition.
func (r roles) graphRanks() []int {
	list := make([]int, r.Graph)
	for i := range list {
		list[i] = i
	}
	return list
}
