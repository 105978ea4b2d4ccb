package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"siafu/bench/trials"
	"siafu/internal/disk"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/internal/table"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/plan"
)

// DiskOptions are the options of bench disk.
type DiskOptions struct {
	Dir     string  `arg:"" optional:"" default:"." help:"Folder on the disk to measure."`
	Size    string  `default:"1GB" help:"Size of the file to write and read. It has no name, and the system deletes it with the process."`
	Seconds float64 `default:"2" help:"Time limit of each measurement of the disk."`
	Memory  string  `default:"" help:"Memory for the largest array with random rows. Empty: a third of the available memory."`
	Threads int     `default:"0" help:"Threads that gather random rows; 0: this machine's processors."`
	Data    string  `default:"" placeholder:"DATA" help:"Dataset folder. Prints what an epoch of a default network with --memory scratch=DIR reads from files, and its time with the measured rate."`
	Limit   string  `default:"" help:"--memory of that run. Empty: the available memory."`
}

const opDisk = "bench disk"

// The sizes of accesses to the disk, and the smallest array with random rows, in bytes.
var (
	diskPieces  = []int{1 << 20, 4 << 20, 16 << 20}
	diskThreads = []int{1, 2, 4}
)

const leastArray = 170e6

// DiskRate is a measured rate of a folder's disk.
type DiskRate struct {
	Access  string
	Piece   int // bytes
	Threads int
	Write   bool
	Rate    float64 // bytes a second
}

// Run writes and reads a file in the folder, gathers random rows from arrays of several sizes, and
// prints the rates.
func (o DiskOptions) Run(ctx context.Context, w io.Writer) error {
	ctx, stop := trials.UntilInterrupted(ctx)
	defer stop()
	bytes, ok := size.Parse(o.Size)
	if !ok || bytes < int64(diskPieces[len(diskPieces)-1]) || o.Seconds <= 0 {
		return fault.New(fault.Usage, opDisk, "", "--size=%s --seconds=%g", o.Size, o.Seconds).
			Then("set a size of at least 17MB, such as 1GB, and more than 0 seconds")
	}
	memory, ok := size.Parse(o.Memory)
	if o.Memory == "" {
		memory, ok = host.AvailableMemory()/3, true
	}
	if !ok {
		return fault.New(fault.Usage, opDisk, "", "--memory=%s", o.Memory).Then("write a number with MB or GB, such as 4GB")
	}
	rates, err := o.rates(ctx, w, bytes)
	if err != nil {
		return err
	}
	t := table.Right("access", "piece MB", "threads", "GB/s|%.2f")
	for _, r := range rates {
		t.Add(r.Access, r.Piece>>20, r.Threads, r.Rate/1e9)
	}
	if err := t.Text(w); err != nil {
		return err
	}
	if err := o.rows(ctx, w, memory); err != nil {
		return err
	}
	return o.epoch(w, rates)
}

func (o *DiskOptions) rates(ctx context.Context, w io.Writer, bytes int64) (list []DiskRate, err error) {
	free, err := host.FreeDisk(o.Dir)
	if err != nil {
		return nil, fault.System(opDisk, o.Dir, err)
	}
	if free < bytes {
		return nil, fault.New(fault.IO, opDisk, o.Dir, "the file needs %d MB, but the file system has %d MB", bytes/1e6, free/1e6).
			Then("set a smaller --size, or choose another folder")
	}
	if host.InMemory(o.Dir) {
		fmt.Fprintf(w, "%s is on a file system in memory: these are not rates of a disk\n", o.Dir)
	}
	f, err := disk.Create(o.Dir, bytes)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	access := ", direct"
	if !f.Direct() {
		access = ", page cache" // no direct accesses on this file system
	}
	limit, stop := time.Duration(o.Seconds*float64(time.Second)), func() bool { return ctx.Err() != nil }
	// Blocks that are only reserved are not read: the first load writes the whole file.
	if _, err := f.Rate(disk.Load{Piece: diskPieces[2], Threads: 2, Write: true, Stop: stop}); err != nil {
		return nil, err
	}
	for _, write := range []bool{true, false} {
		name := map[bool]string{true: "write", false: "read"}[write] + access
		for _, piece := range diskPieces {
			for _, threads := range diskThreads {
				rate, err := f.Rate(disk.Load{Piece: piece, Threads: threads, Write: write, Limit: limit, Stop: stop})
				if err != nil {
					return nil, err
				}
				list = append(list, DiskRate{name, piece, threads, write, rate})
			}
		}
	}
	for _, populate := range []bool{true, false} {
		name := map[bool]string{true: "mapped, populated", false: "mapped, page faults"}[populate]
		for _, piece := range diskPieces {
			rate, ok, err := f.MappedRate(piece, populate, limit, stop)
			if err != nil {
				return nil, err
			}
			if ok {
				list = append(list, DiskRate{name, piece, 1, false, rate})
			}
			if !populate { // the system chooses the pieces
				break
			}
		}
	}
	return list, context.Cause(ctx)
}

// rowWidth is the width of random rows in floats: 128 bytes.
const rowWidth = 32

// rows measures gathers of random rows from arrays of more and more bytes.
func (o *DiskOptions) rows(ctx context.Context, w io.Writer, memory int64) (err error) {
	defer mapped.Catch(&err)
	threads := o.Threads
	if threads <= 0 {
		threads = runtime.NumCPU()
	}
	team := kernels.NewTeam(threads)
	defer team.Close()
	t := table.Right(fmt.Sprintf("random rows of %d bytes, %d threads: array GB|%%.2f", 4*rowWidth, threads), "M rows/s|%.1f", "GB/s|%.2f")
	for bytes := int64(min(leastArray, memory)); ; bytes = min(4*bytes, memory) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rows := randomRows(team, int(bytes/(4*rowWidth))) // a second
		t.Add(float64(bytes)/1e9, rows/1e6, rows*4*rowWidth/1e9)
		if bytes >= memory {
			break
		}
	}
	return t.Text(w)
}

// randomRows returns the rows per second that a gather reads at random from an array of n rows. It adds
// 64 rows to each sum.
func randomRows(team *kernels.Team, n int) float64 {
	const sums, degree = 1 << 14, 64
	b := fixture{team, mapped.NewArena()}
	defer b.arena.Free()
	n = max(n, 1)
	x, dst := b.zeros(n, rowWidth), b.zeros(sums, rowWidth)
	for i := 0; i < len(x.Host()); i += rowWidth { // without it, all pages are the same page of zeros
		x.Host()[i] = 1
	}
	offsets := b.regular(sums, degree)
	g := kernels.Gather{Begin: offsets[:sums], End: offsets[1:], Cols: b.ids(sums*degree, n, 1)}
	seconds := minSeconds(100*time.Millisecond, func() { team.SpMM(dst, g.Edges(), x, false) })
	return sums * degree / seconds
}

// epoch prints what an epoch of the dataset reads, with the best rate of reading.
func (o *DiskOptions) epoch(w io.Writer, rates []DiskRate) error {
	if o.Data == "" {
		return nil
	}
	best := 0.0
	for _, r := range rates {
		if !r.Write {
			best = max(best, r.Rate)
		}
	}
	c := config.Defaults()
	c.Ranks, c.Servers, c.VertexOrder, c.InputDropout, c.CacheInput, c.Partitioner = 1, 0, "natural", 0, "on", "contiguous"
	c.Scratch, c.Memory = o.Dir, o.Limit
	p, err := plan.New(plan.Options{Data: o.Data, RanksPerHost: 1, Bandwidth: "10gbit", Latency: "50us",
		DiskRate: fmt.Sprintf("%.0fB", max(best, 1)), Config: plan.Flags(c)})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: --hidden %d --layers %d --input-dropout 0 --vertex-order natural\n", p.Dataset, c.Hidden, c.Layers)
	return p.PrintDisk(w)
}
