package ranks

import (
	"siafu/graph"
	"siafu/kernels/model"
	"siafu/ranks/world"
)

// chooseOrders agrees on the orders of products, and on whether ÂX or other powers are cached. If
// free memory determines the caching, the configuration then records the choice: the last bits of
// the numbers depend on it, so a resumed or repeated run must not choose again. Collective over the
// world.
func (r *joined) chooseOrders() (orders string, err error) {
	requested := r.cfg
	defer func() { r.decide(&requested) }()
	votes := []int64{1} // ÂX fits
	if !r.isServer() {
		votes[0] = r.cacheFits()
	}
	if err := world.MinInt64s(r.world, votes); err != nil {
		return "", err
	}
	fits := votes[0] == 1
	if r.cfg.CacheInput == "auto" {
		r.cfg.CacheInput = chooseCache(r.cfg, r.net, r.meta, fits, r.earlier.Cached)
	}
	if err := r.chooseGhosts(fits); err != nil {
		return "", err
	}
	orders = r.cfg.Orders(&r.net, r.meta, fits)
	r.printOrders(fits)
	if want := r.cfg.RecomputeGhosts; want != "auto" && want != "none" && r.net.LocalLayers == 0 && r.reporter != nil {
		r.reporter.warn("--recompute-ghosts=%s has no effect: the rows of no layer follow from the inputs of ghosts alone", want)
	}
	return orders, nil
}

// chooseCache resolves auto: on or off if an earlier decision or the free memory decides,
// otherwise auto.
func chooseCache(c Config, net model.Spec, meta *graph.Meta, fits bool, earlier *bool) string {
	kept := func(fits bool) bool {
		net := net
		c.Orders(&net, meta, fits)
		return net.CacheInput
	}
	keep := kept(fits)
	if earlier != nil {
		keep = *earlier
	}
	switch {
	case kept(true) == kept(false) && keep == kept(fits):
		return "auto"
	case keep:
		return "on"
	}
	return "off"
}

// printOrders warns about changes of the cached ÂX in a resumed run, on rank 0.
func (r *joined) printOrders(fits bool) {
	s := r.state
	switch {
	case s == nil:
	case s.Cached != r.net.CacheInput:
		r.reporter.warn("cache_input is now %t, but was %t before the checkpoint: results may differ in their last "+
			"bits from an uninterrupted run",
			r.net.CacheInput, s.Cached)
	case s.Cached && !fits:
		r.reporter.warn("caching %s takes more than half of the free memory; it stays cached because the run has cached it so far. "+
			"Disable it with --cache-input off, which changes the last bits of the results", r.net.Powers())
	}
}
