package partition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/graph/shard"
	"siafu/internal/durable"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
)

// Run partitions the dataset in the folder dir: graph.Open, Assign and Build. It writes the shards
// to o.Root if set. If another process is partitioning the dataset, Run waits until it ends.
func Run(dir string, o Options) (*Report, error) {
	defer lock(dir)()
	root := cmp.Or(o.Root, filepath.Join(dir, "parts"))
	return divide(dir, filepath.Join(root, strconv.Itoa(o.Parts)), o)
}

// divide builds the shards in the folder final.
func divide(dir, final string, o Options) (*Report, error) {
	ds, err := graph.Open(dir)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	if err := replaceable(final); err != nil {
		return nil, err
	}
	if err := host.RequireMemory(op, dir, memoryNeed(ds.Meta, o.withDefaults().Method),
		"use a machine with more memory, or another --method"); err != nil {
		return nil, err
	}
	owner, err := Assign(ds, o)
	if err != nil {
		return nil, err
	}
	return build(ds, owner, final, o)
}

// memoryNeed returns the memory that a partitioning needs at least: 16 bytes per vertex, and 60 for the
// levels of package multilevel.
func memoryNeed(m *graph.Meta, method string) int64 {
	vertex := int64(16)
	if method == multilevelMethod.Name {
		vertex += 60
	}
	return size.Product(m.Vertices, vertex)
}

// Build writes the shards of ds for o.Parts ranks, and meta.json, to the folder parts/P of the
// dataset. Vertex v belongs to rank owner[v]; a rank may own no vertices. A rank numbers its
// vertices in the order o.Order, which is computed on the whole graph.
//
// Build writes to a temporary folder, which then replaces parts/P. After an error, an existing
// parts/P is unchanged. If an existing parts/P was made with other options, Build renames it. Build
// never replaces a folder with files that siafu did not write. It removes unfinished folders of
// processes that were killed.
//
// owner must have an entry below o.Parts for each vertex. Faults have kind Usage or Config for
// invalid options, else IO.
func Build(ds *graph.Dataset, owner []uint32, o Options) (*Report, error) {
	return build(ds, owner, shard.Folder(ds.Dir, o.Parts), o)
}

func build(ds *graph.Dataset, owner []uint32, final string, o Options) (made *Report, err error) {
	defer mapped.Catch(&err)
	o = o.withDefaults()
	if err := o.validate(int64(ds.In.Rows())); err != nil {
		return nil, err
	}
	checkOwners(owner, ds.In.Rows(), o.Parts)
	if err := replaceable(final); err != nil {
		return nil, err
	}
	tmp, err := durable.NewFolder(op, final)
	if err != nil {
		return nil, err
	}
	defer tmp.Close() // removes the temporary folder, or the older folder that it replaced
	m, err := writeShards(ds, owner, o, tmp.Path)
	if err != nil {
		return nil, err
	}
	if err := m.write(tmp.Path); err != nil {
		return nil, err
	}
	if err := moveAside(final, m, tmp.Path+".old"); err != nil {
		return nil, err
	}
	if err := tmp.Commit(); err != nil {
		return nil, err
	}
	return m.Report, nil
}

// moveAside renames the folder final before the shards of m replace its shards. Later requests with
// the options of the old shards find them under the new name, and running trainings continue. It
// does not rename shards that have the same options as m or belong to another dataset.
func moveAside(final string, m *Meta, aside string) error {
	was, err := find(final, "", m.Parts)
	if err != nil || was.Fingerprint != m.Fingerprint || was.folderName() == m.folderName() {
		return nil // there are no usable shards
	}
	side := filepath.Join(filepath.Dir(final), was.folderName())
	if err := replaceable(side); err != nil {
		return err
	}
	return durable.Replace(op, final, side, aside)
}

func checkOwners(owner []uint32, n, parts int) {
	if len(owner) != n {
		panic("partition: number of owners differs from number of vertices")
	}
	for _, p := range owner {
		if int64(p) >= int64(parts) {
			panic("partition: owner is not below parts")
		}
	}
}

// writeShards makes the shards one after another and writes them to the folder tmp.
func writeShards(ds *graph.Dataset, owner []uint32, o Options, tmp string) (*Meta, error) {
	chosen := order.New(o.Order, ds.In)
	chosen.Vertices = byKind(chosen.Vertices, ds.Meta.Relations)
	host.FreeMemory() // returns the memory of the partitioner and the order before shards are made
	reported := chosen
	reported.Vertices = nil // the dataset's vertex count
	m := &Meta{
		Format: formatVersion, Method: o.Method, Order: o.Order, Seed: o.Seed, Passes: o.Passes, Slack: o.Slack, Parts: o.Parts,
		Fingerprint: ds.Meta.Fingerprint(), Assignment: assignment(owner, chosen.Vertices),
		Report: &Report{Method: o.Method, Parts: o.Parts, Order: reported},
		Files:  make(map[string]graph.FileInfo, o.Parts),
	}
	c := newCarver(ds, owner, chosen.Vertices, o.Parts, shard.Shard{
		Vertices: ds.Meta.Vertices, Fingerprint: m.Fingerprint, Assignment: m.Assignment,
		Directed: ds.Meta.Directed, Weighted: ds.Meta.Weighted, EdgeDim: ds.Meta.EdgeDim, Classes: ds.Meta.Classes,
		FeatureDim: ds.Meta.FeatureDim,
		TrainTotal: ds.Meta.Train, ValTotal: ds.Meta.Val, TestTotal: ds.Meta.Test,
		MajorityTest: majorityTest(ds),
	})
	defer c.arena.Free()
	for p := range o.Parts {
		if err := m.writeShard(c, p, tmp); err != nil {
			return nil, err
		}
	}
	m.Report.countHops(ds, owner, c.vertices, c.start)
	m.Report.finish()
	return m, nil
}

// byKind returns a vertex order with the vertices of each kind together, so that intervals have one kind.
// nil is the order of the dataset, which has them together.
func byKind(vertices []uint32, of *graph.Relations) []uint32 {
	if vertices == nil || of == nil {
		return vertices
	}
	sorted := make([]uint32, 0, len(vertices))
	for k := range of.Kinds {
		first, end := of.First(k), of.First(k+1)
		for _, v := range vertices {
			if int64(v) >= first && int64(v) < end {
				sorted = append(sorted, v)
			}
		}
	}
	return sorted
}

// writeShard makes the shard of rank p and writes it to the folder tmp.
func (m *Meta) writeShard(c *carver, p int, tmp string) error {
	a := mapped.NewArena()
	defer a.Free()
	s := c.cut(a, p)
	name := strconv.Itoa(p) + ".part"
	info, err := shard.WriteBlocks(filepath.Join(tmp, name), s, c.blocks(s))
	if err != nil {
		return err
	}
	m.Report.add(s)
	m.Files[name] = info
	return nil
}

// assignment returns a hash of the owners and of the order of vertices.
func assignment(owner, order []uint32) string {
	h := sha256.New()
	h.Write(mapped.Bytes(owner))
	h.Write(mapped.Bytes(order))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// majorityTest returns the fraction of test vertices that have the most frequent label of the
// training vertices. Among equally frequent labels it uses the lowest. It returns 0 if the dataset
// has no classes.
func majorityTest(ds *graph.Dataset) float64 {
	if ds.Targets != nil {
		return 0 // no classes to predict
	}
	train, test := make([]int64, ds.Meta.Classes), make([]int64, ds.Meta.Classes)
	for v, label := range ds.Labels {
		switch {
		case label == graph.Unlabelled:
		case ds.Split[v] == graph.SplitTrain:
			train[label]++
		case ds.Split[v] == graph.SplitTest:
			test[label]++
		}
	}
	best := 0
	for label, count := range train {
		if count > train[best] {
			best = label
		}
	}
	if len(train) == 0 {
		return 0
	}
	return ratio(test[best], ds.Meta.Test)
}
