package ranks

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// decisions are choices of a run that a measurement or the free memory has made, and whose alternatives
// differ in the last bits of results. A resumed run, a restarted one and a later view take them over.
type decisions struct {
	Cached *bool  // whether ÂX is cached; nil: undecided
	Ghosts string // --recompute-ghosts; empty: undecided
	Codec  string // of --codec auto; empty: undecided

	Recorded config.Recorded // by the run of --repeat
}

// shareDecisions gives all ranks the earlier decisions of the run. Rank 0 reads them from the checkpoint,
// else from the config.toml of an earlier attempt. Collective over the world.
func (r *joined) shareDecisions() error {
	var d decisions
	var err error
	if r.reporter != nil {
		d, err = r.earlierDecisions()
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	blob, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil {
		return err
	}
	err = json.Unmarshal(blob, &r.earlier)
	r.cfg.SettledCodec, r.cfg.Recorded = r.earlier.Codec, r.earlier.Recorded
	return err
}

func (r *joined) earlierDecisions() (d decisions, err error) {
	if r.cfg.Repeat != "" {
		if d, err = recordedDecisions(r.cfg.Repeat); err != nil {
			return d, err
		}
	}
	if s := r.state; s != nil {
		d.Cached, d.Ghosts, d.Codec = &s.Cached, s.Ghosts, s.Codec
		if d.Ghosts == "" {
			d.Ghosts = "auto" // of a checkpoint without the field
		}
		return d, nil
	}
	m := r.reporter.folder.Marker()
	if r.reporter.begun || r.continues(m) || m != nil && r.cfg.Resume == "auto" {
		_ = d.readConfig(r.reporter.folder.Dir()) // without the file the earlier attempt has trained nothing
	}
	return d, nil
}

// readConfig sets the decisions in the config.toml of a run folder.
func (d *decisions) readConfig(dir string) error {
	var c Config
	if err := runfolder.ReadConfig(dir, &c); err != nil {
		return err
	}
	d.Ghosts = c.RecomputeGhosts
	if cached := c.CacheInput == "on"; cached || c.CacheInput == "off" {
		d.Cached = &cached
	}
	return nil
}

// recordedDecisions reads the decisions of a run from its folder.
func recordedDecisions(dir string) (d decisions, err error) {
	if err := d.readConfig(dir); err != nil {
		return d, fault.System("repeat", filepath.Join(dir, "config.toml"), err)
	}
	err = runfolder.EachEpoch(dir, func(e *runfolder.Epoch) {
		if e.Codec != "" {
			d.Recorded.Codecs = append(d.Recorded.Codecs, e.Codec)
		}
		if e.Refresh != "" {
			d.Recorded.Policies = append(d.Recorded.Policies, e.Refresh)
		}
	})
	return d, err
}

// decide records the flags that have been resolved since they were requested.
func (r *joined) decide(requested *Config) {
	r.decided = map[string]string{}
	add := func(flag, requested, now string) {
		if requested != now {
			r.decided[flag] = now
		}
	}
	add("cache-input", requested.CacheInput, r.cfg.CacheInput)
	add("recompute-ghosts", requested.RecomputeGhosts, r.cfg.RecomputeGhosts)
}

// printDecisions logs the flags that repeat the decisions of this run.
func (p *reporter) printDecisions(flags map[string]string) {
	if list, _ := p.cfg.Codecs(); len(list) > 1 || p.cfg.Ghosts().Alternates() {
		p.log("decided by measurement in each epoch: codec or ghost rows; --repeat %s repeats the run to the last bit", p.folder.Dir())
	}
	if len(flags) == 0 {
		return
	}
	var words []string
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		words = append(words, fmt.Sprintf("--%s %s", flag, flags[flag]))
	}
	p.log("decided by measurement or free memory: %s; with these flags a run repeats to the last bit", strings.Join(words, " "))
}

// agreeOnKernels resolves --kernel auto to the best variant that all ranks have. Collective over the world.
func (r *joined) agreeOnKernels() error {
	if r.cfg.Kernel == "auto" {
		level := []int64{kernels.Level()}
		if err := world.MinInt64s(r.world, level); err != nil {
			return err
		}
		r.cfg.CommonKernel = kernels.Common(level[0])
	}
	if r.state == nil || r.state.Kernel == "" || r.state.Kernel == r.cfg.KernelVariant() {
		return nil
	}
	before, now := r.state.Kernel, r.cfg.KernelVariant()
	if kernels.SameBits(before, now) {
		r.reporter.log("kernel now=%s before=%s: the results have the same bits", now, before)
	} else {
		r.reporter.warn("the kernels are now %s, but were %s before the checkpoint: results differ in their last "+
			"bits from an uninterrupted run; "+
			"set --kernel %s to continue with the same bits", now, before, before)
	}
	return nil
}
