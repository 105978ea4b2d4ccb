package engine

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"siafu/graph"
	"siafu/graph/partition/multilevel"
	"siafu/graph/shard"
	"siafu/halo/sample"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
)

// sampledSteps builds the steps of sampled mini-batches: each step is a separate shard of the
// sampled receptive field, whose input values are the features of the field's vertices.
type sampledSteps struct{ *stepBuffers }

// sampledSteps allocates the steps of a network; most has the maximal number of rows of each stretch.
func (b *batches) sampledSteps(net *model.Network, most []int) sampledSteps {
	d := sampledSteps{b.t.engine.newStepBuffers(b.t, net, most, b.count)}
	b.current = d.template
	return d
}

// newNeighbours allocates steps with sampled neighbours (GraphSAGE, NIPS'17, algorithm 2, as
// DGL trains with it). Collective over the graph ranks.
func (e *Engine) newNeighbours(b *batches) (trainingOf, error) {
	source, err := sample.NewNeighbours(e.sampling(), e.Arena)
	if err != nil {
		return nil, err
	}
	targets := e.trainVertices()
	d := b.sampledSteps(e.batchNetwork(), MaxSampledRows(e.Config, e.Shard.Vertices, shard.Counts{Train: int64(len(targets))}))
	b.source = source
	b.next = func(epoch, step int, pieces []int) (*lockstep, error) {
		f, err := source.Draw(step, e.shuffledShare(targets, epoch, pieces[0]))
		if err != nil {
			return nil, err
		}
		if err := source.Fetch(d.packed); err != nil {
			return nil, err
		}
		return d.step(f), nil
	}
	return b.shareOf(targets), nil
}

// sampling returns the options of neighbour sampling.
func (e *Engine) sampling() sample.Options {
	return sample.Options{
		Comm: e.Peers, Shard: e.Shard, Seed: e.Config.Seed, Fanouts: e.Config.Batching().Fanouts, Team: e.packers,
		Self: model.KindOf(e.Config.Model).SelfLoops(), EdgeData: e.edgeData(),
	}
}

// edgeData returns the edge attributes that the network uses in a step.
func (e *Engine) edgeData() sample.EdgeData {
	weighted := e.Shard.Weighted && e.Network.Weighs() || NormalisesEdges(e.Config)
	return sample.EdgeData{Weighted: weighted, EdgeDim: e.Network.Design.EdgeDim}
}

// NormalisesEdges reports whether the edges of a step are divided by their probabilities. Attention
// normalises its edges itself.
func NormalisesEdges(c config.Config) bool {
	return c.Batching().Kind == config.Saint && model.KindOf(c.Model).Adds()
}

// batchNetwork returns the network of sampled steps.
func (e *Engine) batchNetwork() *model.Network {
	return model.New(e.Config.BatchNetwork(e.Network), false)
}

// MaxSampledRows returns the maximal numbers of rows by layer in a sampled step, on a rank of a
// graph with the given number of vertices. Every vertex adds its sampled neighbours, up to
// all vertices. Clusters have the maximal size that the partitioner allows. The vertices of random walks
// are different.
func MaxSampledRows(c config.Config, vertices int64, have shard.Counts) []int {
	b := c.Batching()
	if b.Kind == config.Cluster {
		return []int{int(min(int64(math.Ceil(clusterSlack*float64(have.Vertices)/float64(b.Clusters)))*int64(b.Joined), have.Vertices))}
	}
	if b.Kind == config.Saint {
		return []int{int(min(int64(b.Size)*int64(1+b.Walk), have.Vertices))}
	}
	if b.Kind == config.Approximate {
		return []int{int(have.Vertices), int(b.Share * float64(vertices-have.Vertices))}
	}
	rows := min((have.Train+int64(b.Count)-1)/int64(b.Count), vertices)
	most := []int{int(rows)}
	for l := len(b.Fanouts) - 1; l >= 0; l-- {
		all := min(rows*(1+int64(b.Fanouts[l])), vertices)
		most, rows = append(most, int(all-rows)), all
	}
	return most
}

// SampledBlock has the numbers of rows and edges that a layer of a sampled step gathers.
type SampledBlock struct{ Rows, Edges int64 }

// SampledEdges returns the blocks of a step of at most the given numbers of rows, by layer
// from the input on, or the single block that all layers of joined clusters or walks share. Of an
// approximated graph, all layers but the last share the first block. It assumes that vertices have the mean
// number of neighbours, and that all own neighbours of clusters and
// walks are in the step.
func SampledEdges(c config.Config, have shard.Counts, most []int) []SampledBlock {
	b, rows := c.Batching(), int64(most[0])
	of := func(rows, edges int64) int64 {
		return int64(float64(rows) / float64(max(have.Vertices, 1)) * float64(edges))
	}
	if b.Kind == config.Approximate { // all edges into own vertices, and into sampled ones from both
		more, all := int64(most[1]), float64(rows)+float64(most[1])/b.Share
		last := SampledBlock{rows + more, have.Edges}
		first := SampledBlock{rows + more, have.Edges + int64(float64(of(more, have.Edges))*float64(rows+more)/max(all, 1))}
		return []SampledBlock{first, last}[max(2-len(c.Network(1, 1).GatherLayers()), 0):]
	}
	if b.Kind != config.Neighbour {
		return []SampledBlock{{rows, of(rows, have.Edges-have.Cut)}}
	}
	blocks := make([]SampledBlock, len(b.Fanouts))
	for k, more := range most[1:] {
		l, edges := len(blocks)-1-k, of(rows, have.Edges)
		if model.KindOf(c.Model).SelfLoops() {
			edges += rows
		}
		edges = min(edges, rows*int64(b.Fanouts[l]))
		rows += int64(more)
		blocks[l] = SampledBlock{rows, edges}
	}
	return blocks
}

// clusterSlack is the maximal size of a cluster relative to the mean.
const clusterSlack = 1.05

// step returns the lockstep of a field with loaded features.
func (d sampledSteps) step(f *sample.Field) *lockstep {
	e := d.e
	for i, v := range f.Rows {
		if i < f.Ends[len(f.Ends)-1] { // own vertices
			d.setRow(i, f.IDs[i], uint32(v.Row), e.Shard.Split[v.Row])
		} else {
			d.setUnlabelled(i, f.IDs[i])
		}
	}
	for i, w := range f.LossWeights {
		d.lossTargets.RowWeights[i] = w / float32(d.template.passes)
	}
	d.scratch.Free()
	blocks, ends := make([]graphwork.Block, len(f.Layers)), make([]int, len(d.intervalCounts))
	for l := range blocks {
		if l > 0 && f.Ends[l] == f.Ends[l-1] && &f.Layers[l].Offsets[0] == &f.Layers[l-1].Offsets[0] {
			blocks[l] = blocks[l-1]
			continue
		}
		blocks[l] = graphwork.Block{Shard: layerShard(f, l, e.edgeData()), Factor: layerFactors(f, l)}
	}
	for k := range ends {
		ends[k] = f.Ends[len(f.Ends)-1-k]
	}
	o := graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true}
	store := d.template.store
	work := graphwork.NewBlocks(store, blocksOfLayers(store.Network.Spec, blocks), o, d.template.adder, d.scratch)
	s := d.stepBuffers.buildStep(&route{graph: work, rows: d.template.ghostRows(false, false)}, ends)
	e.arrays = max(e.arrays, e.Arena.Used()+d.scratch.Used())
	return s
}

// blocksOfLayers returns the block of each layer of a network, from the blocks of the layers that gather.
// Other layers have the block of the next such layer, or of the last one.
func blocksOfLayers(s model.Spec, blocks []graphwork.Block) (list []graphwork.Block) {
	at, gathers := 0, s.GatherLayers()
	for l := range s.Layers() {
		for at < len(gathers)-1 && gathers[at] < l {
			at++
		}
		list = append(list, blocks[at])
	}
	return list
}

// layerShard returns a shard of the rows that the l-th layer that gathers reads, with its edges and their
// attributes.
func layerShard(f *sample.Field, l int, along sample.EdgeData) *shard.Shard {
	n, e := f.Ends[l], f.Layers[l]
	for len(e.Offsets) <= n { // other rows gather nothing
		e.Offsets = append(e.Offsets, int64(len(e.Sources)))
	}
	s := sampledShard(graph.CSR{Offsets: e.Offsets, Cols: e.Sources}, e.Offsets[1:], f.IDs, f.InDegree[:n], f.OutDegree[:n], 0)
	s.EdgeDim, s.EdgeFeatures, s.EdgeMeans = along.EdgeDim, e.Features, edgeMeans(e, along.EdgeDim)
	if along.Weighted {
		s.Weighted, s.Weights, s.InStrength, s.OutStrength = true, e.Weights, f.InStrength[:n], f.OutStrength[:n]
	}
	return s
}

// edgeMeans returns the means of the dim features of the edges into each row, 0 without edges.
// A row's self loop has these features in a step, whose edges are the sampled ones.
func edgeMeans(e sample.Edges, dim int) []float32 {
	means := make([]float32, (len(e.Offsets)-1)*dim)
	for v := range len(e.Offsets) - 1 {
		from, to := int(e.Offsets[v]), int(e.Offsets[v+1])
		for j := range dim {
			sum := 0.0
			for i := from; i < to; i++ {
				sum += float64(e.Features[i*dim+j])
			}
			means[v*dim+j] = float32(sum / float64(max(to-from, 1)))
		}
	}
	return means
}

// layerFactors returns the factors of the rows that a layer reads, nil if no edge is left out.
func layerFactors(f *sample.Field, l int) []float32 {
	list := f.Layers[l].Factor
	if list == nil {
		return nil
	}
	for len(list) < f.Ends[l] {
		list = append(list, 1)
	}
	return list
}

// newJoinedClusters allocates steps of joined clusters (Cluster-GCN, KDD'19, algorithm 1), and
// partitions the own vertices into clusters.
func (e *Engine) newJoinedClusters(b *batches) (trainingOf, error) {
	c, began := e.Config.Batching(), time.Now()
	of := e.Clusters(e.Shard.Rank, func() []uint32 { return e.clusterVertices(c.Clusters) })
	host.FreeMemory() // of the partitioner
	e.Reporter.Note(fmt.Sprintf("clusters of_each_rank=%d seconds=%.3f\n", c.Clusters, time.Since(began).Seconds()))
	source := sample.NewClusters(e.Shard, e.Peers.Rank(), c.Clusters, len(e.batchNetwork().Spec.GatherLayers()),
		e.edgeData(), of, e.packers, e.Arena)
	most := maxClusterRows(source, c.Clusters, c.Joined)
	b.joined = joinedClusters{source, most}
	if !e.pipelined() {
		d := b.sampledSteps(e.batchNetwork(), []int{most})
		b.next = func(_, _ int, pieces []int) (*lockstep, error) { return d.step(source.Join(pieces, d.packed)), nil }
	}
	return func(k int) (n int64) {
		for _, v := range source.Members(k) {
			n += e.countTraining(int(v), int(v)+1)
		}
		return n
	}, nil
}

// newWalks allocates steps of the subgraphs that random walks induce (GraphSAINT, ICLR'20, algorithm 1).
func (e *Engine) newWalks(b *batches) (trainingOf, error) {
	began := time.Now()
	d := b.sampledSteps(e.batchNetwork(), MaxSampledRows(e.Config, e.Shard.Vertices, shard.Counts{Vertices: int64(e.Shard.NumOwn())}))
	source := sample.NewWalks(e.walking(), e.Arena)
	e.Reporter.Note(fmt.Sprintf("walks coverage=%d seconds=%.3f\n", sample.Coverage, time.Since(began).Seconds()))
	b.estimates = true
	b.next = func(_, step int, _ []int) (*lockstep, error) { return d.step(source.Draw(step, d.packed)), nil }
	return func(int) int64 { return int64(len(e.trainVertices())) }, nil
}

// newApproximate allocates the only step of an epoch: own vertices and some of other ranks (Angerd et al.,
// arXiv 2012.04930). Collective over the graph ranks.
func (e *Engine) newApproximate(b *batches) (trainingOf, error) {
	o := e.sampling()
	o.Self, o.Fanouts = false, []int{math.MaxInt32}
	source, err := sample.NewNeighbours(o, e.Arena)
	if err != nil {
		return nil, err
	}
	net := e.batchNetwork()
	d := b.sampledSteps(net, MaxSampledRows(e.Config, e.Shard.Vertices, shard.Counts{Vertices: int64(e.Shard.NumOwn())}))
	f, err := source.Approximate(e.Config.Batching().Share, len(net.Spec.GatherLayers()), d.packed)
	if err != nil {
		return nil, err
	}
	b.source, b.current = source, d.step(f)
	b.next = func(int, int, []int) (*lockstep, error) { return b.current, nil }
	return b.shareOf(e.trainVertices()), nil
}

// walking returns the options of random walks.
func (e *Engine) walking() sample.WalkOptions {
	c := e.Config.Batching()
	return sample.WalkOptions{
		Shard: e.Shard, Rank: e.Peers.Rank(), Seed: e.Config.Seed, Roots: c.Size, Length: c.Walk, Team: e.packers,
		Layers: len(e.batchNetwork().Spec.GatherLayers()), EdgeData: e.edgeData(), Normalise: NormalisesEdges(e.Config),
	}
}

// StoredClusters returns the clusters of the vertices of a partition, made by compute if they are not
// stored.
type StoredClusters func(partition int, compute func() []uint32) []uint32

// NoClusters stores no clusters.
func NoClusters(_ int, compute func() []uint32) []uint32 { return compute() }

// StoreClusters stores clusters, for all stages and views of a process.
func StoreClusters() StoredClusters {
	var mu sync.Mutex
	list := map[int][]uint32{} // by partition
	return func(partition int, compute func() []uint32) []uint32 {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := list[partition]; !ok {
			list[partition] = compute()
		}
		return list[partition]
	}
}

// clusterVertices partitions the own vertices, with the edges between them, into n clusters
// with few edges between clusters.
func (e *Engine) clusterVertices(n int) []uint32 {
	s := e.Shard
	own := s.OwnEdges()
	ds := &graph.Dataset{Meta: &graph.Meta{Directed: s.Directed}, Split: s.Split}
	ds.In = graph.CSR{Offsets: make([]int64, s.NumOwn()+1), Cols: make([]uint32, 0, len(s.In.Cols))}
	for v := range own.Begin {
		ds.In.Cols = append(ds.In.Cols, own.Cols[own.Begin[v]:own.End[v]]...)
		ds.In.Offsets[v+1] = int64(len(ds.In.Cols))
	}
	if s.Directed {
		heap := mapped.NewArena()
		defer heap.Free()
		ds.Out = own.BySource(heap)
	}
	slack := multilevel.Slack{Vertices: clusterSlack, Edges: math.Inf(1), Train: math.Inf(1)}
	return multilevel.Partition(ds, multilevel.Options{Parts: min(n, max(s.NumOwn(), 1)), Seed: e.Config.Seed, Slack: slack})
}

// maxClusterRows returns the maximal number of vertices of joined clusters.
func maxClusterRows(c *sample.Clusters, clusters, joined int) (rows int) {
	var sizes []int
	for k := range clusters {
		sizes = append(sizes, len(c.Members(k)))
	}
	slices.Sort(sizes)
	for _, n := range sizes[clusters-joined:] {
		rows += n
	}
	return rows
}
