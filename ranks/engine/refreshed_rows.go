package engine

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/size"
)

// Steps with control variates compute rows of own vertices that are at most as many hops from an own
// training vertex, along edges of the rank, as layers gather. Other ranks may read the history of more
// own vertices, which would stay zero. Each epoch therefore computes the rows of these vertices once,
// without a loss.

// refreshedRows returns the own vertices that steps compute only for other ranks. Those of depth d, from
// 1 on, are read by a gather with d-1 gathers above. Their neighbours follow in the steps that sample
// them. Collective over the graph ranks.
func (e *Engine) refreshedRows(layers int) (byDepth [][]uint32, err error) {
	byDepth = make([][]uint32, layers+1)
	if e.Peers.Size() == 1 {
		return byDepth, nil
	}
	s := e.Shard
	read, computed := make([]int, s.NumOwn()+s.NumGhosts()), make([]int, s.NumOwn()+s.NumGhosts()) // depths
	for v := range read {
		read[v], computed[v] = layers+1, layers+1
		if v < s.NumOwn() && s.Split[v] == graph.SplitTrain {
			read[v], computed[v] = 0, 0
		}
	}
	for depth := 1; depth <= layers; depth++ {
		for v := range s.NumOwn() {
			if read[v] == depth-1 {
				lower(read, s.In.Cols[s.In.Offsets[v]:s.In.Offsets[v+1]], depth)
			}
			if computed[v] == depth-1 {
				lower(computed, s.In.Cols[s.In.Offsets[v]:s.InOwnEnd[v]], depth)
			}
		}
		if err := e.announceDepth(read, depth); err != nil {
			return nil, err
		}
		for v := range s.NumOwn() {
			if read[v] == depth && computed[v] > depth {
				byDepth[depth], computed[v] = append(byDepth[depth], uint32(v)), depth
			}
		}
	}
	return byDepth, nil
}

// lower lowers the depths of vertices.
func lower(depths []int, vertices []uint32, depth int) {
	for _, u := range vertices {
		depths[u] = min(depths[u], depth)
	}
}

// announceDepth lowers the depth of own vertices that other ranks read at a depth. Collective over the
// graph ranks.
func (e *Engine) announceDepth(read []int, depth int) error {
	s := e.Shard
	out, in := make([]uint8, s.NumGhosts()), make([]uint8, len(s.SendRows))
	for g := range out {
		if read[s.NumOwn()+g] == depth {
			out[g] = 1
		}
	}
	if err := alltoall(e.Peers, out, s.GhostStart, in, s.SendStart); err != nil {
		return err
	}
	for k, reads := range in {
		if reads > 0 {
			lower(read, s.SendRows[k:k+1], depth)
		}
	}
	return nil
}

// RefreshedRows estimates the number of own vertices that steps compute only for other ranks, as if no
// two paths led to the same vertex: at most all sent ones that own training vertices do not reach.
func RefreshedRows(c shard.Counts, layers int) int {
	reached, each := c.Train, 1+(c.Edges-c.Cut)/max(c.Vertices, 1)
	for range layers {
		reached = min(c.Vertices, size.Product(reached, each))
	}
	return int(min(c.SendRows, c.Vertices-reached))
}
