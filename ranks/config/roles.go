package config

import (
	"cmp"
	"time"

	"siafu/graph/fault"
	"siafu/ranks/world"
)

// Limits are the bounds of every wait on another rank.
func (c *Config) Limits(log func(string)) (world.Limits, error) {
	l := world.Limits{Log: log}
	for _, d := range []struct {
		flag, got string
		to        *time.Duration
	}{{"stall-warn", c.StallWarn, &l.Warn}, {"stall-abort", c.StallAbort, &l.Abort}} {
		v, err := time.ParseDuration(d.got)
		if err != nil || v < 0 {
			return l, fault.New(fault.Usage, "train", "", "--%s=%q", d.flag, d.got).
				Then("it must be a duration such as 90s or 10m; 0s is no limit")
		}
		*d.to = v
	}
	return l, nil
}

// View says what so many ranks are for: how many are servers, and how many parts
// the others carry.
func (c *Config) View(ranks int) (world.View, error) {
	v := world.View{Servers: c.Servers}
	if v.Servers < 0 {
		v.Servers = 0
		if n := ranks - c.Bridges; n > 2 || n == 2 && c.Asynchronous() {
			v.Servers = 1 // of two ranks in step it would take one from the graph
		}
	}
	v.Bridges = c.Bridges
	v.Ranks = ranks - v.Servers - v.Bridges
	if v.Bridges > max(v.Ranks, 0) {
		return world.View{}, fault.New(fault.Config, "train", "", "%d bridges and %d servers in a world of %d ranks leave %d graph ranks", v.Bridges, v.Servers, ranks, max(v.Ranks, 0)).
			Then("use at most as many bridges as graph ranks, or more ranks")
	}
	if v.Servers > v.Ranks {
		return world.View{}, fault.New(fault.Config, "train", "", "%d servers in a world of %d ranks leave %d graph ranks", v.Servers, ranks, max(v.Ranks, 0)).
			Then("use at most as many servers as graph ranks, or more ranks")
	}
	if v.Parts = cmp.Or(c.Parts, v.Ranks); v.Parts < v.Ranks {
		return world.View{}, fault.New(fault.Usage, "train", "", "--parts=%d for %d graph ranks", v.Parts, v.Ranks).
			Then("it must be at least the number of graph ranks, each of which carries a part: use --parts %d or more, or fewer ranks", v.Ranks)
	}
	return v, nil
}
