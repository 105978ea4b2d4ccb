package ranks

import (
	"os"

	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// placement is where the values of a rank are stored (--memory scratch=DIR).
type placement struct {
	limit    int64 // memory of this part, 0 without --memory and --memory scratch=DIR
	resident int64 // memory needed
	disk     int64 // bytes of the scratch file
	streamed []string
	files    forecast.Files // read and written
}

// pool returns the reader of files for training, nil if the page cache has room for all of them.
func (p *placement) pool() *mapped.Pool {
	if !p.files.Direct {
		return nil
	}
	return mapped.NewPool(p.files.StayRead, p.files.StayWritten)
}

// memoryLimit returns the memory of this part of a rank: --memory, or with --memory scratch=DIR the available
// memory. 0 means no limit.
func (r *joined) memoryLimit() int64 {
	if bytes, ok := size.Parse(r.cfg.Memory); ok {
		return bytes / int64(max(1, len(r.view.Carried(r.view.Rank(r.rank)))))
	}
	if r.cfg.Scratch != "" {
		return host.AvailableMemory() / r.ranksHere()
	}
	return 0
}

// forecast estimates this run with the memory limit of this part.
func (r *joined) forecast() (*forecast.Forecast, error) { return r.forecastOf(r.cfg) }

func (r *joined) forecastOf(c Config) (*forecast.Forecast, error) {
	f, _, err := forecast.Of(c, r.meta, r.Graph, r.Servers, r.net.CacheInput)
	if err == nil {
		f.Limit, f.Whole = r.placement.limit, r.shard != nil && r.shard.Whole
	}
	return f, err
}

// placeValues decides which arrays of this rank are stored in its scratch file. It refuses a run that
// exceeds --memory or the free disk space. Collective over the world.
func (r *joined) placeValues() error {
	if r.cfg.Memory == "" && r.cfg.Scratch == "" {
		return nil
	}
	r.placement.limit = r.memoryLimit()
	err := r.place()
	disk := make([]int64, r.world.Size())
	disk[r.rank] = r.placement.disk
	if err := world.SumInt64s(r.world, disk); err != nil {
		return err
	}
	here := int64(0)
	for q, name := range r.world.Hosts() {
		if name == r.world.Hosts()[r.rank] {
			here += disk[q]
		}
	}
	if err == nil && r.cfg.Scratch != "" {
		err = forecast.CheckDisk("train", r.cfg.Scratch, here)
	}
	return agree(r.world, err)
}

// memoryOf estimates a configuration, and the memory of this rank with it.
func (r *joined) memoryOf(c Config) (*forecast.Forecast, forecast.Memory, error) {
	f, err := r.forecastOf(c)
	if err != nil {
		return nil, nil, err
	}
	return f, r.partEstimate(f, r.rank, r.counts()), nil
}

func (r *joined) place() error {
	if r.isServer() {
		return nil
	}
	r.cfg.Slices = forecast.FitSlices(r.cfg, r.placement.limit, func(c Config) (int64, error) {
		_, m, err := r.memoryOf(c)
		return m.Resident(), err
	})
	r.net.Slices = r.cfg.Slices
	f, m, err := r.memoryOf(r.cfg)
	if err != nil {
		return err
	}
	p := &r.placement
	p.resident, p.disk, p.streamed = m.Resident(), m.Of(forecast.Disk), m.Streamed()
	p.files = f.Files(m, r.counts(), f.Verified(r.meta, r.shardBytes()))
	r.arena.Spill(r.cfg.Scratch, p.streamed...)
	if p.resident <= p.limit || r.cfg.ForceMemory {
		return nil
	}
	remedy := "use more ranks, or raise --memory"
	if r.cfg.Scratch == "" && r.cfg.CanStream(r.net, r.meta.Task) {
		remedy = "set --memory scratch=DIR to a folder with free disk space, or raise --memory"
	}
	return fault.New(fault.Config, "train", r.data, "rank %d needs %s of memory, but has %s", r.rank, megabytes(p.resident),
		megabytes(p.limit)).Then("%s", remedy)
}

// shardBytes returns the size of this part's shard, 0 if it is unknown.
func (r *joined) shardBytes() int64 {
	info, err := os.Stat(shard.Paths(r.shards, r.partitions())[r.ownPartition()])
	if err != nil {
		return 0
	}
	return info.Size()
}
