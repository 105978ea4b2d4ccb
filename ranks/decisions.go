package ranks

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"siafu/kernels"
	"siafu/ranks/world"
)

// decisions are choices of a run that a measurement or the free memory has made, and whose alternatives
// differ in the last bits of results. A resumed run, a restarted one and a later view take them over.
type decisions struct {
	Cached *bool  // whether ÂX is cached; nil: undecided
	Ghosts string // --recompute-ghosts; empty: undecided
	Codec  string // of --codec auto; empty: undecided
}

// shareDecisions gives all ranks the earlier decisions of the run. Rank 0 reads them from the checkpoint,
// else from the config.toml of an earlier attempt. Collective over the world.
func (r *joined) shareDecisions() error {
	var d decisions
	if r.reporter != nil {
		d = r.earlierDecisions()
	}
	blob, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil {
		return err
	}
	err = json.Unmarshal(blob, &r.earlier)
	r.cfg.SettledCodec = r.earlier.Codec
	return err
}

func (r *joined) earlierDecisions() decisions {
	if s := r.state; s != nil {
		d := decisions{&s.Cached, s.Ghosts, s.Codec}
		if d.Ghosts == "" {
			d.Ghosts = "auto" // of a checkpoint without the field
		}
		return d
	}
	m := r.reporter.folder.Marker()
	if !r.reporter.begun && !r.continues(m) && (m == nil || r.cfg.Resume != "auto") {
		return decisions{}
	}
	var c Config
	if r.reporter.folder.ReadConfig(&c) != nil {
		return decisions{} // the earlier attempt has trained nothing
	}
	d := decisions{Ghosts: c.RecomputeGhosts}
	if cached := c.CacheInput == "on"; cached || c.CacheInput == "off" {
		d.Cached = &cached
	}
	return d
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
		r.reporter.warn("the kernels are now %s, but were %s before the checkpoint: results differ in their last bits from an uninterrupted run; "+
			"set --kernel %s to continue with the same bits", now, before, before)
	}
	return nil
}
