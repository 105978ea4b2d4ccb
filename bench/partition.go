package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"time"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/partition/multilevel"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/table"
)

// PartitionOptions are the options of bench partition.
type PartitionOptions struct {
	Data    []string `arg:"" help:"Dataset folders."`
	Parts   []int    `default:"4,8" help:"Numbers of partitions."`
	Methods []string `default:"fennel,ldg,multilevel" help:"Partitioners, as siafu partition --method."`
	Seeds   int      `default:"3" help:"Number of seeds to average, from 1. Times are the minimum."`
}

// partitionResult has the results and the cost of one run.
type partitionResult struct {
	owner   []uint32
	seconds float64
	bytes   int64 // peak, without the dataset; 0 if the system does not report it
}

type partitioner struct {
	name   string
	divide func(ctx context.Context, parts int, seed uint64) (partitionResult, error)
}

// Run compares partitioners with each other and, where this machine has
// it, with METIS.
func (o PartitionOptions) Run(ctx context.Context, w io.Writer) error {
	if o.Seeds < 1 {
		return fault.New(fault.Usage, "bench partition", "", "--seeds=%d", o.Seeds).Then("measure 1 or more")
	}
	for _, dir := range o.Data {
		ds, err := graph.Open(dir)
		if err != nil {
			return err
		}
		err = comparePartitioners(ctx, o, ds, w)
		ds.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func comparePartitioners(ctx context.Context, o PartitionOptions, ds *graph.Dataset, w io.Writer) error {
	m, err := newMetis(ds)
	if err != nil {
		return err
	}
	defer m.close()
	list := ownPartitioners(o, ds)
	if m.missing == "" {
		list = append(list, m.partitioners()...)
	}
	fmt.Fprintf(w, "%s: %d vertices, %d edges, means of %d seeds\n", ds.Meta.Name, ds.Meta.Vertices, ds.Meta.Edges, o.Seeds)
	t := table.Right("parts", "method", "edge cut|%.0f", "cut|%.2f%%", "ghosts|%.0f", "vertices|%.3f", "edges|%.3f", "train|%.3f",
		"MB an epoch|%.3g", "min s|%.3f", "peak MiB|%.1f")
	for _, parts := range o.Parts {
		for _, p := range list {
			l, err := averaged(ctx, ds, p, parts, o.Seeds)
			if err != nil {
				return err
			}
			peak := any("")
			if l.bytes > 0 {
				peak = float64(l.bytes) / (1 << 20)
			}
			t.Add(parts, p.name, l.cutEdges, 100*l.cutEdges/float64(max(ds.Meta.Edges, 1)), l.ghosts,
				l.balance.Vertices, l.balance.Edges, l.balance.Train, l.predicted/1e6, l.seconds, peak)
		}
	}
	if err := t.Text(w); err != nil {
		return err
	}
	if m.missing != "" {
		_, err = fmt.Fprintln(w, "left out:", m.missing)
	}
	return err
}

// ownPartitioners returns siafu's: multilevel twice, because METIS by default balances only
// vertices.
func ownPartitioners(o PartitionOptions, ds *graph.Dataset) []partitioner {
	var list []partitioner
	for _, method := range o.Methods {
		list = append(list, partitioner{method, timedPartition(func(parts int, seed uint64) ([]uint32, error) {
			return partition.Assign(ds, partition.Options{Method: method, Parts: parts, Seed: seed})
		})})
		if method != "multilevel" {
			continue
		}
		list = append(list, partitioner{"multilevel, vertices only", timedPartition(func(parts int, seed uint64) ([]uint32, error) {
			return multilevel.Partition(ds, multilevel.Options{
				Parts: parts, Seed: seed, Slack: multilevel.Slack{Vertices: 1.05, Edges: math.Inf(1), Train: math.Inf(1)},
			}), nil
		})})
	}
	return list
}

// timedPartition measures a partitioner of this process.
func timedPartition(assign func(parts int, seed uint64) ([]uint32, error)) func(context.Context, int, uint64) (partitionResult, error) {
	return func(_ context.Context, parts int, seed uint64) (partitionResult, error) {
		var d partitionResult
		var err error
		d.bytes = peakMemory(func() {
			start := time.Now()
			d.owner, err = assign(parts, seed)
			d.seconds = time.Since(start).Seconds()
		})
		return d, err
	}
}

// partitionLine is a line of the table: means of cuts and ghosts, the worst
// balance, the least time and the most memory.
type partitionLine struct {
	cutEdges, ghosts, predicted float64
	balance                     partition.Balance
	seconds                     float64
	bytes                       int64
}

func averaged(ctx context.Context, ds *graph.Dataset, p partitioner, parts, seeds int) (partitionLine, error) {
	l := partitionLine{seconds: math.Inf(1)}
	for seed := range seeds {
		if ctx.Err() != nil {
			return l, ctx.Err()
		}
		d, err := p.divide(ctx, parts, uint64(seed+1))
		if err != nil {
			return l, err
		}
		r := partition.Count(ds, d.owner, partition.Options{Parts: parts})
		n := float64(seeds)
		l.cutEdges += float64(r.CutEdges) / n
		l.ghosts += float64(r.Ghosts) / n
		l.predicted += float64(r.PredictedBytes) / n
		l.balance.Vertices = max(l.balance.Vertices, r.Balance.Vertices)
		l.balance.Edges = max(l.balance.Edges, r.Balance.Edges)
		l.balance.Train = max(l.balance.Train, r.Balance.Train)
		l.seconds, l.bytes = min(l.seconds, d.seconds), max(l.bytes, d.bytes)
	}
	return l, nil
}

// peakMemory returns the peak increase of this process's memory during do in bytes, 0 if the
// system does not report it (Linux does).
func peakMemory(do func()) int64 {
	debug.FreeOSMemory()
	told := host.ForgetPeak()
	before := host.PeakRSS()
	do()
	if !told {
		return 0
	}
	return max(host.PeakRSS()-before, 0)
}
