package plan

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/disk"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/size"
	"siafu/internal/table"
	"siafu/ranks/forecast"
)

// Disk is the estimate of the files of a rank with --memory scratch=DIR.
type Disk struct {
	Rate     float64        `json:"bytes_per_second"`
	Source   string         `json:"rate_source"` // the origin of Rate
	Resident int64          `json:"resident_bytes"`
	Scratch  int64          `json:"scratch_bytes"`
	Free     int64          `json:"free_bytes"` // in the scratch folder
	Files    forecast.Files `json:"files"`
}

// The accesses that measure a disk: as many threads and as large pieces as the rate needs on most
// disks, for a second at most.
const (
	ratePiece   = 16 << 20
	rateThreads = 2
	rateLimit   = time.Second
)

// MeasureDisk returns the bytes per second at which the largest file of a dataset is read, and how it
// was read.
func MeasureDisk(dir string, m *graph.Meta) (rate float64, source string, err error) {
	largest := ""
	for name, file := range m.Files {
		if largest == "" || file.Bytes > m.Files[largest].Bytes {
			largest = name
		}
	}
	path := filepath.Join(dir, largest)
	f, err := disk.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	source = "measured with direct reads of " + path
	if !f.Direct() {
		source = "measured through the page cache with " + path + ": its file system has no direct reads"
	}
	rate, err = f.Rate(disk.Load{Piece: ratePiece, Threads: rateThreads, Limit: rateLimit})
	return rate, source, err
}

// diskRate returns the rate of --disk-rate, measured if it is auto. It is 0 without --memory scratch=DIR.
func (q *request) diskRate() (rate float64, source string, err error) {
	switch rate, ok := DiskRate(q.DiskRate); {
	case ok:
		return rate, "--disk-rate", nil
	case cmp.Or(q.DiskRate, "auto") != "auto":
		return 0, "", fault.New(fault.Usage, op, "", "a disk rate of %q", q.DiskRate).
			Then("write auto, or bytes a second with MB or GB, such as 1GB")
	case q.Config.Scratch == "" || q.meta == nil:
		return 0, "", nil
	}
	return MeasureDisk(q.Data, q.meta)
}

// files sets the plan's estimate of the files of the best candidate's largest rank.
func (p *Plan) files(q *request, source string) {
	if q.Config.Scratch == "" {
		return
	}
	best := p.Candidates[p.Best]
	f, part := best.Codecs[0].forecast, q.view.Carried(best.Largest)[0]
	report := best.report.Ranks[part]
	m := f.GraphRank(part, report)
	d := &Disk{Rate: q.disk, Source: source, Resident: m.Resident(), Scratch: m.Of(forecast.Disk),
		Files: f.Files(m, report, f.Verified(q.sized, best.shardBytes(part, m)))}
	d.Free, _ = host.FreeDisk(q.Config.Scratch) // 0 if unknown
	p.Disk = d
}

// shardBytes returns the size of a part's shard, or an estimate if it does not exist.
func (c *Candidate) shardBytes(part int, m forecast.Memory) int64 {
	if c.made != nil {
		return c.made.Files[fmt.Sprintf("%d.part", part)].Bytes
	}
	if c.whole {
		return 12 * c.report.Ranks[part].Vertices // ids and degrees
	}
	return m.Of(forecast.Mapped)
}

// gigabytes formats bytes as GB, small values with more digits.
func gigabytes(bytes int64) string {
	gb := float64(bytes) / 1e9
	switch {
	case gb >= 100:
		return fmt.Sprintf("%.0f", gb)
	case gb >= 1:
		return fmt.Sprintf("%.1f", gb)
	}
	return fmt.Sprintf("%.3f", gb)
}

// PrintDisk prints the homes of data and the bytes of passes, nothing without --memory scratch=DIR.
func (p *Plan) PrintDisk(w io.Writer) error {
	d, best := p.Disk, p.Candidates[p.Best]
	if d == nil {
		return nil
	}
	fmt.Fprintf(w,
		"\nHomes of the data of rank %d, and bytes read from files in an epoch, an evaluation, and before training; GB\n", best.Largest)
	t := table.Right("data", "GB", "home", "epoch", "evaluation", "start")
	small := p.Memory / 1000 // not printed
	for _, term := range best.Memory {
		if k := term.Kind; (k == forecast.Array || k == forecast.Heap) && term.Bytes >= small {
			t.Add(term.Name, gigabytes(term.Bytes), forecast.InMemory)
		}
	}
	for _, s := range d.Files.Streams {
		if s.Bytes >= small {
			t.Add(s.Name, gigabytes(s.Bytes), s.Home, gigabytes(s.Epoch.Read), gigabytes(s.Evaluation.Read), gigabytes(s.Start.Read))
		}
	}
	t.Text(w)
	f := d.Files
	if f.Random {
		fmt.Fprintln(w,
			"The first layer gathers rows of the features at random from the file, which is slow: set --input-dropout 0 --cache-input on.")
	}
	fmt.Fprintf(w, "Start: %s GB read, %s of them to verify files, and %s GB written. An epoch: %s GB read, %s GB written. An evaluation: "+
		"%s GB read. %d epochs: %s GB read, %s GB written.\n",
		gigabytes(f.Start.Read), gigabytes(f.Verified), gigabytes(f.Start.Written), gigabytes(f.Epoch.Read),
		gigabytes(f.Epoch.Written), gigabytes(f.Evaluation.Read),
		p.Epochs, gigabytes(f.Run.Read), gigabytes(f.Run.Written))
	fmt.Fprintln(w, d.cache())
	seconds := float64(f.Epoch.Read+f.Epoch.Written) / d.Rate
	computing := ""
	if e := best.Codecs[0].Epoch; p.Timed {
		computing = fmt.Sprintf(", computing takes %s: an epoch takes %s", duration(e.Compute()), duration(e.Seconds(p.Mode)))
	}
	fmt.Fprintf(w, "Disk: %s GB/s (%s), %s an epoch%s.\n", gigabytes(int64(d.Rate)), d.Source, duration(seconds), computing)
	free := ""
	if d.Free > 0 {
		free = fmt.Sprintf(" of %s GB free", gigabytes(d.Free))
	}
	_, err := fmt.Fprintf(w, "scratch file of a rank %s GB%s: %s; columns gathered in slices: %d\n", gigabytes(d.Scratch), free,
		strings.Join(best.Memory.Streamed(), ", "), max(best.Codecs[0].Slices, 1))
	return err
}

// cache says which data of epochs is in memory.
func (d *Disk) cache() string {
	f := d.Files
	if f.Again <= f.Cache {
		return fmt.Sprintf("Reads (%s): the %s GB that epochs read fit in the %s GB of memory beside arrays, and are read only once.",
			f.Reads(), gigabytes(f.Again), gigabytes(f.Cache))
	}
	return fmt.Sprintf("Reads (%s): %s of the %s GB that epochs read in order stay in memory, and each pass reads the rest from the disk. "+
		"With --memory %sGB, epochs read nothing.",
		f.Reads(), gigabytes(f.StayRead+f.StayWritten), gigabytes(f.Again), gigabytes(size.Sum(d.Resident, f.Again)))
}

// stored reports whether the counts of the given partitioners are known without reading edges.
func (q *request) stored(parts int, methods []string) bool {
	return parts == 1 || !slices.ContainsFunc(methods, func(m string) bool { return q.made(m, parts) == nil })
}

// open maps the dataset, and verifies it unless it is large and nothing but counts of existing shards
// and samples of it are read.
func (q *request) open() (*graph.Dataset, error) {
	m, err := graph.ReadMeta(q.Data)
	if err != nil {
		return nil, err
	}
	q.meta = m
	bytes := int64(0)
	for _, file := range m.Files {
		bytes = size.Sum(bytes, file.Bytes)
	}
	known := q.stored(q.Config.Partitions(q.view.Parts), q.methods) && (q.Config.VertexOrder == "natural" || q.made("", 1) != nil)
	if bytes >= q.large && known {
		return graph.Map(q.Data, q.large/32)
	}
	return graph.Open(q.Data)
}

// large is the size in bytes from which a dataset is not verified.
const large = 2 << 30
