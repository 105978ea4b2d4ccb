package forecast

import (
	"math"
	"slices"
	"testing"

	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
)

// run returns a network of 8 features, hidden layers of 4 and 2 classes.
func run(t *testing.T, layers, graph, servers int, name string) Run {
	t.Helper()
	c, err := codec.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	net := model.Spec{Kind: "gcn", Dims: []int{8}}
	for range layers - 1 {
		net.Dims = append(net.Dims, 4)
	}
	net.Dims = append(net.Dims, 2)
	net.Choose(model.Load{CacheFits: true}, model.Choices{Order: "auto", CacheInput: "auto"})
	return Run{Config: config.Config{RankOptions: config.RankOptions{Intervals: 1}}, Net: net, Graph: graph, Servers: servers,
		Codecs: []codec.Codec{c}, Slots: 2}
}

// triangle is three ranks of 100 vertices, each sending 10 rows to the next
// and 20 to the one before.
func triangle() []partition.RankReport {
	parts := make([]partition.RankReport, 3)
	for p := range parts {
		send := make([]int64, 3)
		send[(p+1)%3], send[(p+2)%3] = 10, 20
		parts[p] = partition.RankReport{
			Vertices: 100, Edges: 1000, Cut: 200, Ghosts: 30, SendRows: 30, SendTo: send, Train: 50, TrainEdges: 600,
		}
	}
	return parts
}

// ÂX is kept, so only the second layer exchanges rows, of width 2, there and
// back: 90 ghosts x 2 floats x 2 ways.
func TestTraffic(t *testing.T) {
	f := New(run(t, 2, 3, 0, "none"))
	want := Traffic{Raw: 90 * 2 * 4 * 2, Sent: 90 * 2 * 4 * 2, Exact: true, Messages: 12}
	if got := f.Traffic(triangle()); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
	want.Sent, want.Exact = want.Raw+12*(codec.BlockHeader+1), false
	if got := New(run(t, 2, 3, 0, "s2")).Traffic(triangle()); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

// rounded is a codec that knows its sizes: two bytes a float.
type rounded struct{ codec.Codec }

func (rounded) ID() codec.ID                    { return codec.ID{Codec: 99} }
func (rounded) Size(rows, cols int) (int, bool) { return 2 * rows * cols, true }
func TestCodecThatKnowsItsSize(t *testing.T) {
	r := run(t, 2, 3, 0, "none")
	r.Codecs[0] = rounded{r.Codecs[0]}
	want := Traffic{Raw: 1440, Sent: 720 + 12*codec.BlockHeader, Exact: true, Messages: 12}
	if got := New(r).Traffic(triangle()); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

// Where codecs are tried there is room for each, and for rows as they are.
func TestRoomForOthers(t *testing.T) {
	r := run(t, 2, 3, 0, "none")
	plain := New(r).GraphRank(0, triangle()[0])
	s2, int4 := run(t, 2, 3, 0, "s2").Codecs, run(t, 2, 3, 0, "int4").Codecs
	r.Codecs = slices.Concat(r.Codecs, int4, s2)
	all := New(r).GraphRank(0, triangle()[0])
	r.Codecs = s2
	one := New(r).GraphRank(0, triangle()[0])
	if ids := all.Of(Array) - plain.Of(Array); ids != 128 { // 30 numbers of 4 bytes
		t.Errorf("%d bytes for dataset ids", ids)
	}
	if all.Of(Heap) != one.Of(Heap) || all.Of(Heap) <= plain.Of(Heap) {
		t.Errorf("%d bytes of encoded rows among others, alone %d", all.Of(Heap), one.Of(Heap))
	}
}

// An exchange lasts until the host with most to send or to receive is done.
func TestLink(t *testing.T) {
	f := New(run(t, 2, 3, 0, "none"))
	rows := Exchange{Layer: 1, Width: 2}
	for name, tc := range map[string]struct {
		link Link
		want float64
	}{
		"a host each":     {Link{Bandwidth: 1000 / PayloadShare, RanksPerHost: 1, Copy: 1}, 240. / 1000}, // 30 rows of 8 bytes
		"latency":         {Link{Bandwidth: 1000 / PayloadShare, Latency: 1, RanksPerHost: 1, Copy: 1}, 0.24 + 2},
		"two share":       {Link{Bandwidth: 1000 / PayloadShare, RanksPerHost: 2, Copy: 2000}, 240./1000 + 240./2000},
		"all on one host": {Link{Bandwidth: 1, Latency: 9, RanksPerHost: 3, Copy: 1000}, 720. / 1000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.rows(rows, triangle(), tc.link); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("%v seconds, expected %v", got, tc.want)
			}
		})
	}
}

// Weights go through the servers' links, or once around all ranks.
func TestWeightSeconds(t *testing.T) {
	link := Link{Bandwidth: 1000 / PayloadShare, RanksPerHost: 1, Copy: 1}
	bytes := 4 * float64(8*4+4+4*2+2)
	for name, tc := range map[string]struct {
		servers int
		want    float64
	}{
		"one server":  {1, 2 * 3 * bytes / 1000},               // three copies down, three gradients up
		"two servers": {2, (2*bytes + 2*bytes + bytes) / 1000}, // the busier one has two ranks, and gets the other's sum
		"no server":   {0, 2 * 2 * math.Floor(bytes/3) / 1000}, // a third for each of two others, twice
	} {
		t.Run(name, func(t *testing.T) {
			f := New(run(t, 2, 3, tc.servers, "none"))
			if got := f.weightSeconds(link); math.Abs(got-tc.want) > 1e-3 {
				t.Errorf("%v seconds, expected %v", got, tc.want)
			}
		})
	}
}

// What own edges take is hidden, and no more than the exchange takes.
func TestEpoch(t *testing.T) {
	f := New(run(t, 2, 3, 0, "none"))
	rates := Rates{Row: 1e-3, Edge: map[int]float64{1: 1e-4}, Backward: map[int]float64{1: 1e-5}}
	link := Link{Bandwidth: 1000 / PayloadShare, RanksPerHost: 1, Copy: 1e9}
	e := f.Epoch(triangle(), rates, link)
	// There: 1000 edges and 100 self loops, 200 of them cut. Back as many, since
	// more than half of the edges lead into training vertices.
	own, back := 900*1e-4, 900*1e-5
	want := Epoch{Tensor: 0.1, Gather: 1100 * 1.1e-4, Rows: 0.48, Exposed: 0.24 - own + 0.24 - back}
	want.Weights = e.Weights
	want.Sequential = want.Tensor + want.Gather + want.Rows + want.Weights
	want.Overlapping = want.Tensor + want.Gather + want.Exposed + want.Weights
	if d := math.Abs(e.Sequential-want.Sequential) + math.Abs(e.Overlapping-want.Overlapping) + math.Abs(e.Exposed-want.Exposed); d > 1e-9 {
		t.Errorf("%+v, expected %+v", e, want)
	}
	link.RanksPerHost = 3
	if all := f.Epoch(triangle(), rates, link); math.Abs(all.Compute()-3*e.Compute()) > 1e-9 {
		t.Errorf("three ranks on a host compute for %v, one for %v", all.Compute(), e.Compute())
	}
}

// An epoch with computed ghost rows of two layers has their products and gathers, and exchanges only
// the last layer's rows. Counts are from the definition: products of 4x4 and 4x4 weights are computed
// for 30 and 37 ghosts, and the first of two gathers reads 90 edges into 30 ghosts, and their self loops.
func TestEpochOfComputedGhosts(t *testing.T) {
	r := run(t, 4, 3, 0, "none")
	r.Net.Dims = []int{4, 4, 4, 4, 4}
	r.Net.Choose(model.Load{}, model.Choices{Order: "apply-first", CacheInput: "off", Ghosts: "layers:2"})
	f, parts := New(r), triangle()
	for p := range parts {
		parts[p].Hops = []shard.Hop{{Ghosts: 30, Edges: 90, Cut: 80, SendRows: 30}, {Ghosts: 7, Edges: 40, SendRows: 7}, {Ghosts: 2}}
	}
	weight := 16. + 4 // with its bias
	if got, want := f.ghostRows(parts[0]), (37*weight+30*weight)/(4*weight); math.Abs(got-want) > 1e-12 {
		t.Errorf("products of %v vertices, expected %v", got, want)
	}
	for l, want := range []float64{120, 0, 0, 0} {
		if got := f.ghostEdges(l, parts[0]); got != want {
			t.Errorf("layer %d gathers along %v edges into ghosts, expected %v", l, got, want)
		}
	}
	rates, link := Rates{Row: 1e-3, Edge: map[int]float64{}, Backward: map[int]float64{}},
		Link{Bandwidth: 1e4 / PayloadShare, RanksPerHost: 1, Copy: 1e9}
	for l := range 4 {
		rates.Edge[l], rates.Backward[l] = 1e-5, 1e-6
	}
	e := f.Epoch(parts, rates, link)
	gather := (4*1100 + waits*120) * 1.1e-5 // every layer has gradients along its edges, because its product comes before
	if d := math.Abs(e.Tensor-1e-3*(100+waits*67./4)) + math.Abs(e.Gather-gather); d > 1e-9 {
		t.Errorf("%+v, expected gathers of %v", e, gather)
	}
	if got, want := f.Traffic(parts).Raw, int64(2*2*90*4*4); got != want {
		t.Errorf("%d bytes of two layers, expected %d", got, want)
	}
	if got, want := f.Fetched(parts), int64(3*(37*4*4+37*ghostBytes+90*ghostEdgeBytes)); got != want {
		t.Errorf("%d bytes are fetched, expected %d", got, want)
	}
	// One rank, over measured links: the same work, and both exchanges of two layers.
	one := f.Work(parts[:1], rates, 1, func(Exchange) float64 { return 0.5 })
	want := e.Tensor + gather + 4*0.5
	if math.Abs(one.Sequential-want) > 1e-9 || math.Abs(one.Overlapping-(want-2*900*1.1e-5)) > 1e-9 {
		t.Errorf("%v s and %v with overlap, expected %v and %v", one.Sequential, one.Overlapping, want, want-2*900*1.1e-5)
	}
	if exact := f.CountsGhosts(parts); !exact || f.CountsGhosts(triangle()) {
		t.Errorf("counted %t", exact)
	}
}

// With every:4, three of four epochs have one fit and 30 predicted rows. A rank that computes slower
// because others share its host also predicts slower.
func TestPredictSeconds(t *testing.T) {
	r := run(t, 2, 3, 0, "none")
	r.Config.Refresh, r.Config.Predict = "every:4", "transfer"
	f, link := New(r), Link{Bandwidth: 1000 / PayloadShare, RanksPerHost: 1, Copy: 1e9}
	rates := Rates{Predict: map[int]predict.Cost{2: {Fit: 1, Row: 0.1}}}
	for perHost, want := range map[int]float64{1: 0.75 * (1 + 30*0.1), 3: 3 * 0.75 * (1 + 30*0.1)} {
		link.RanksPerHost = perHost
		if e := f.Epoch(triangle(), rates, link); math.Abs(e.Predict-want) > 1e-9 || math.Abs(e.Compute()-want) > 1e-9 {
			t.Errorf("%d ranks a host: %v seconds of predictions, expected %v: %+v", perHost, e.Predict, want, e)
		}
	}
}

// With every:4, cells of the vertices and ghosts of the largest part take a step in each fourth epoch, and
// are trained in each second one.
func TestPredictSecondsOfCells(t *testing.T) {
	r := run(t, 2, 3, 0, "none")
	r.Config.Refresh, r.Config.Predict, r.Config.PredictEvery = "every:4", "lstm-gcn", 2
	parts, most := triangle(), int64(0)
	for _, p := range parts {
		most = max(most, p.Vertices+p.Ghosts)
	}
	rates := Rates{Predict: map[int]predict.Cost{2: {Fit: 1, Row: 0.1, Step: 0.01, Train: 4}}}
	want := 0.75*(1+30*0.1) + float64(most)*0.01/4 + 4./2
	if e := New(r).Epoch(parts, rates, Link{Bandwidth: 1000 / PayloadShare, RanksPerHost: 1, Copy: 1e9}); math.Abs(e.Predict-want) > 1e-9 {
		t.Errorf("%v seconds of predictions, expected %v", e.Predict, want)
	}
}

// What is given back before the first epoch is not there together with what
// only epochs touch.
func TestPeak(t *testing.T) {
	m := Memory{{"a", Mapped, 1}, {"b", Array, 10}, {"c", Heap, 100}, {engine.Activations, Array, 1000},
		{halo.Ghosts, Array, 500}, {"d", Scratch, 1200}}
	if m.Peak() != 1611 || m.Certain() != 1510 {
		t.Errorf("peak %d, certain %d", m.Peak(), m.Certain())
	}
	m[5].Bytes = 2000
	if m.Peak() != 2111 {
		t.Errorf("peak %d", m.Peak())
	}
}
