package config

import (
	"cmp"
	"net/netip"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// Limits returns the limits of every wait for another rank.
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

// SilenceLimit returns the silence after which a rank is lost.
func (c *Config) SilenceLimit() (time.Duration, error) {
	d, err := time.ParseDuration(c.LostAfter)
	if err != nil || d < 100*time.Millisecond {
		return 0, fault.New(fault.Usage, "train", "", "--survive lost-after=%q", c.LostAfter).
			Then("it must be a duration of 100ms or more, such as 3s")
	}
	return d, nil
}

// ListenNetwork returns the network on which ranks listen, the zero value without --survive listen=CIDR.
func (c *Config) ListenNetwork() (netip.Prefix, error) {
	if c.Listen == "" {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(c.Listen)
	if err != nil {
		return p, fault.New(fault.Usage, "train", "", "--survive listen=%q", c.Listen).Then("it must be an IP network, such as 10.0.0.0/16")
	}
	return p, nil
}

// View returns the roles of the given number of ranks: the servers, and the parts of each
// graph rank.
func (c *Config) View(ranks int) (world.View, error) {
	v, stages := world.View{Servers: c.Servers, Spares: c.Spares}, c.Pipelining().Ranks()
	if v.Servers < 0 {
		v.Servers = 0
		if n := ranks - c.Bridges - c.Spares; stages > 0 {
			v.Servers = max(min(n-stages, stages), 0)
		} else if n > 2 || n == 2 && c.Asynchronous() {
			v.Servers = 1 // with two synchronous ranks, a server would leave only one graph rank
		}
	}
	v.Bridges, v.Stages = c.Bridges, c.Pipelining().Stages
	v.Ranks = ranks - v.Servers - v.Bridges - v.Spares
	if v.Ranks < 1 && v.Spares > 0 {
		return world.View{}, fault.New(fault.Config, "train", "", "%d spares, %d bridges and %d servers in a world of %d ranks leave %d "+
			"graph ranks", v.Spares, v.Bridges, v.Servers, ranks, max(v.Ranks, 0)).
			Then("lower --survive spares=N, or start more ranks")
	}
	if v.Bridges > max(v.Ranks, 0) {
		return world.View{}, fault.New(fault.Config, "train", "", "%d bridges and %d servers in a world of %d ranks leave %d graph ranks",
			v.Bridges, v.Servers, ranks, max(v.Ranks, 0)).
			Then("lower --lambda bridges=N to the number of graph ranks, or start more ranks")
	}
	if v.Servers > v.Ranks {
		return world.View{}, fault.New(fault.Config, "train", "", "%d servers in a world of %d ranks leave %d graph ranks",
			v.Servers, ranks, max(v.Ranks, 0)).
			Then("lower --servers to the number of graph ranks, or start more ranks")
	}
	if stages > 0 && v.Ranks != stages {
		return world.View{}, fault.New(fault.Usage, "train", "", "--pipeline=%s with %d graph ranks", c.Pipeline, max(v.Ranks, 0)).
			Then("start %d ranks, or choose P and D with a product of %d", stages+v.Servers+v.Bridges+v.Spares, max(v.Ranks, 1))
	}
	if v.Parts = cmp.Or(c.Parts, v.Ranks); v.Parts < v.Ranks {
		return world.View{}, fault.New(fault.Usage, "train", "", "--parts=%d for %d graph ranks", v.Parts, v.Ranks).
			Then("set --parts to %d or more, or start fewer ranks: each graph rank needs a part", v.Ranks)
	}
	return v, nil
}
