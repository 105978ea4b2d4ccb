package forecast

import (
	"slices"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/graphwork"
	"siafu/ranks/stopping"
)

// Home is the place of a rank's data.
type Home string

// The homes of data.
const (
	InMemory  Home = "memory"
	InScratch Home = "scratch file"
	InDataset Home = "dataset"
	InShard   Home = "shard"
)

// IO is a number of bytes read from and written to files.
type IO struct {
	Read    int64 `json:"read_bytes"`
	Written int64 `json:"written_bytes"`
}

// plus adds n times other.
func (io IO) plus(n int, other IO) IO {
	return IO{size.Sum(io.Read, size.Product(int64(n), other.Read)), size.Sum(io.Written, size.Product(int64(n), other.Written))}
}

// less subtracts a fraction of other.
func (io IO) less(part float64, other IO) IO {
	return IO{io.Read - int64(part*float64(other.Read)), io.Written - int64(part*float64(other.Written))}
}

// Stream is data that a rank reads and writes in order, in files.
type Stream struct {
	Name       string `json:"name"`
	Home       Home   `json:"home"`
	Bytes      int64  `json:"bytes"`
	Start      IO     `json:"start"`      // before the first epoch, without the verification of files
	Epoch      IO     `json:"epoch"`      // of training
	Evaluation IO     `json:"evaluation"` // another forward pass
}

// Files has the data that a rank reads from files during training, and the bytes of its passes.
type Files struct {
	Streams  []Stream `json:"streams"`
	Verified int64    `json:"verified_bytes"` // read before the start to verify checksums
	Cache    int64    `json:"cache_bytes"`    // memory for pages of files
	Direct   bool     `json:"direct"`         // passes of training read past the page cache (mapped.Pool)
	// With direct reads: memory for data that stays from pass to pass, which tasks only read, or also write.
	StayRead    int64 `json:"stay_read_bytes"`
	StayWritten int64 `json:"stay_written_bytes"`

	Again      int64 `json:"again_bytes"` // size of the data that every epoch reads, unless it fits in Cache
	Random     bool  `json:"random"`      // a gather reads the features at random
	Start      IO    `json:"start"`       // including verification
	Epoch      IO    `json:"epoch"`
	Evaluation IO    `json:"evaluation"`
	Run        IO    `json:"run"` // start, all epochs and their evaluations, and the evaluations at the end
}

// Files returns the data that a rank with memory m and the given partition reads from files during
// training, and the bytes of each pass. Values in memory are not included. verified is the size of the
// files that the rank verifies before it trains.
//
// Every pass over the vertices reads each stream once. If all streams of epochs fit in f.Limit beside the
// arrays, they are in the page cache, and epochs read nothing. Otherwise epochs read them past the page
// cache, except for the data that stays in memory. Before the first epoch, all reads go through the page
// cache.
func (f *Forecast) Files(m Memory, p partition.RankReport, verified int64) Files {
	net := model.New(f.Net, f.Sparse)
	epoch, evaluation := net.Passes(engine.Memory(f.Config, f.Graph))
	all := Files{Verified: verified, Random: epoch.Random, Cache: max(f.Limit-m.beside(), 0)}
	for _, t := range m {
		s := Stream{Name: t.Name, Home: InScratch, Bytes: t.Bytes}
		if t.Kind == Mapped {
			if s.Home = InShard; f.Whole {
				s.Home = InDataset
			}
		} else if t.Kind != Disk {
			continue
		}
		f.pass(&s, m, p, epoch, evaluation)
		if s.Epoch != (IO{}) || s.Start != (IO{}) {
			all.Streams = append(all.Streams, s)
		}
	}
	all.sum(f)
	return all
}

// pass sets the bytes of a stream's passes.
func (f *Forecast) pass(s *Stream, m Memory, p partition.RankReport, epoch, evaluation model.Passes) {
	reads := func(n int, bytes int64) int64 { return size.Product(int64(n), bytes) }
	back, last := f.reverse(p, epoch.GathersBackward)
	switch blocks := f.blocks(); s.Name {
	case shard.EdgeArrays, graphwork.CodedEdges:
		n := len(epoch.Gathers)
		if !f.Directed {
			n += back
		}
		s.Epoch.Read, s.Evaluation.Read = reads(n, s.Bytes), reads(len(evaluation.Gathers), s.Bytes)
		if f.Net.CacheInput {
			s.Start.Read = reads(blocks*f.Net.Powers().Last, s.Bytes)
		}
		if s.Name == graphwork.CodedEdges {
			s.Start.Written = s.Bytes
			break
		}
		if f.Config.Edges == config.CodedEdges { // to measure the code, and to write it
			s.Start.Read = size.Sum(s.Start.Read, reads(2, floats(p.Edges)))
		}
		if last > 0 || f.Directed && back > 0 {
			s.Start.Read = size.Sum(s.Start.Read, reads(2, s.Bytes)) // to count edges by source, and to sort them
		}
	case shard.FeatureArrays:
		s.Epoch.Read, s.Evaluation.Read = reads(epoch.Features, s.Bytes), reads(evaluation.Features, s.Bytes)
		if f.Net.CacheInput {
			s.Start.Read = reads(blocks, s.Bytes)
		}
		if f.Half && !model.New(f.Net, false).TakesHalves() { // a copy in memory
			s.Epoch.Read, s.Evaluation.Read, s.Start.Read = 0, 0, size.Sum(s.Start.Read, s.Bytes)
		}
	case shard.VertexArrays: // degrees are read only once
		s.Name, s.Bytes = "labels and split", 5*p.Vertices
		s.Epoch.Read, s.Evaluation.Read = s.Bytes, s.Bytes
		if f.Net.Drops() { // ids are the counters of dropout
			s.Name, s.Bytes = "labels, split and ids", 9*p.Vertices
			s.Epoch.Read += reads(epoch.Vertices, 4*p.Vertices)
		}
	case targets:
		s.Epoch.Read, s.Evaluation.Read = s.Bytes, s.Bytes
	case Kept:
		s.Start = IO{reads(blocks-1, s.Bytes), reads(blocks, s.Bytes)}
		s.Epoch.Read, s.Evaluation.Read = reads(epoch.Cached, s.Bytes), reads(evaluation.Cached, s.Bytes)
	case model.Streamed: // a page is read before it is written again
		s.Epoch = IO{floats(int64(epoch.Fetched), p.Vertices), floats(int64(epoch.Written), p.Vertices)}
		s.Evaluation = IO{floats(int64(evaluation.Fetched), p.Vertices), floats(int64(evaluation.Written), p.Vertices)}
	case graphwork.SliceSums: // as well
		s.Epoch = IO{floats(2*int64(epoch.Sums), p.Vertices), floats(int64(epoch.Sums), p.Vertices)}
		s.Evaluation = IO{floats(2*int64(evaluation.Sums), p.Vertices), floats(int64(evaluation.Sums), p.Vertices)}
	case graphwork.Trained:
		s.Start.Written, s.Epoch.Read = s.Bytes, reads(last, s.Bytes)
	case graphwork.Reversed:
		s.Start.Written, s.Epoch.Read = s.Bytes, reads(back, s.Bytes)
	case engine.VertexIDs: // no interval reads them in order
		s.Start.Written = s.Bytes
	}
}

// blocks returns the number of passes that compute ÂX: each pass computes some columns. A pass reads
// and writes whole pages, which have the columns of other passes.
func (f *Forecast) blocks() int {
	columns := engine.CachedWidth(f.Net)
	return (f.Net.Dims[0] + columns - 1) / columns
}

// reverse returns the number of backward gathers along all edges, and along the edges into training
// vertices.
func (f *Forecast) reverse(p partition.RankReport, layers []int) (all, trained int) {
	if f.trainedApart(p) {
		trained = slices.IndexFunc(layers, func(l int) bool { return l != layers[0] })
		if trained < 0 {
			trained = len(layers)
		}
		return len(layers) - trained, trained
	}
	return len(layers), 0
}

// sum sets the bytes of all passes.
func (a *Files) sum(f *Forecast) {
	again, once, edges := int64(0), int64(0), int64(0) // bytes that epochs read, and all bytes
	for _, s := range a.Streams {
		once = size.Sum(once, s.Bytes)
		if s.Epoch.Read > 0 {
			again = size.Sum(again, s.Bytes)
		}
		if s.Name == shard.EdgeArrays {
			edges = s.Bytes
		}
		a.Start = a.Start.plus(1, s.Start)
		a.Epoch = a.Epoch.plus(1, s.Epoch)
		a.Evaluation = a.Evaluation.plus(1, s.Evaluation)
	}
	switch a.Again = again; {
	case again <= a.Cache:
		a.Epoch.Read, a.Evaluation.Read = 0, 0
	case !a.Random:
		a.Direct = true
		a.stay(min(max(a.Cache-window, 0), mapped.Most))
	}
	if once <= a.Cache {
		a.Start.Read = 0
	}
	if a.Verified > f.Limit { // rows of edges are checked after the checksums of all files
		a.Start.Read = size.Sum(a.Start.Read, edges)
	}
	a.Start.Read = size.Sum(a.Start.Read, a.Verified)
	c, evaluations := f.Config, 2 // of the last weights and of the best ones
	if f.Net.Drops() || stopping.IsMetric(c.Monitor) || !c.Exact() {
		evaluations += c.Evaluations()
	}
	a.Run = a.Start.plus(c.Epochs, a.Epoch).plus(evaluations, a.Evaluation)
}

// stay divides memory for data that stays, and subtracts the reads and writes of that data: first of what the
// first tasks of a pass read, then of equal fractions of the other streams that are only read, then of
// those that are written.
func (a *Files) stay(room int64) {
	order := func(s Stream) int {
		switch {
		case s.Epoch.Written > 0:
			return 2
		case s.Name == Kept || s.Name == shard.FeatureArrays:
			return 0
		}
		return 1
	}
	for turn := range 3 {
		list := slices.DeleteFunc(slices.Clone(a.Streams), func(s Stream) bool { return s.Epoch.Read == 0 || order(s) != turn })
		all := int64(0)
		for _, s := range list {
			all = size.Sum(all, s.Bytes)
		}
		stay := min(room, all)
		room -= stay
		if turn < 2 {
			a.StayRead += stay
		} else {
			a.StayWritten = stay
		}
		for _, s := range list {
			part := float64(stay) / float64(all)
			a.Epoch, a.Evaluation = a.Epoch.less(part, s.Epoch), a.Evaluation.less(part, s.Evaluation)
		}
	}
}

// Reads returns how training reads files: direct or page-cache.
func (a *Files) Reads() string {
	if a.Direct {
		return "direct"
	}
	return "page-cache"
}

// Verified returns the size of the files that a rank verifies: its shard, whose size is shard, and if
// it is whole, those of the dataset.
func (f *Forecast) Verified(meta *graph.Meta, shard int64) int64 {
	if !f.Whole {
		return shard
	}
	return size.Sum(files(meta), shard)
}

// diskSeconds returns the seconds of a host's disk in an epoch, for the given number of ranks a host.
func (f *Forecast) diskSeconds(parts []partition.RankReport, r Rates, share float64) (seconds float64) {
	if r.Disk == 0 || f.Config.Scratch == "" {
		return 0
	}
	for rank, p := range parts {
		epoch := f.Files(f.GraphRank(rank, p), p, 0).Epoch
		seconds = max(seconds, share*float64(size.Sum(epoch.Read, epoch.Written))/r.Disk)
	}
	return seconds
}
