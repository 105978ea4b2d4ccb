package ranks

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/forecast"
)

// foreseen returns the forecast of a run.
func foreseen(t *testing.T, c Config, data string, graphRanks, servers int) (*forecast.Forecast, []partition.RankReport) {
	t.Helper()
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := partition.Find(data, graphRanks)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := forecast.Of(c, meta, graphRanks, servers, true)
	if err != nil {
		t.Fatal(err)
	}
	return f, parts.Report.Ranks
}

// The estimates of arrays and bytes are exact, for every kind of network, order of products,
// number of ranks and codec.
func TestForecastIsExact(t *testing.T) {
	t.Parallel()
	dense, sparse, weighted := map[bool]string{}, bagOf(t, 3300), map[bool]string{}
	for _, directed := range []bool{false, true} {
		weighted[directed] = weightedGraph(t, directed)
		dense[directed] = planted(t, generate.Options{Vertices: 4200, Edges: 21000, Directed: directed})
	}
	half := planted(t, generate.Options{Vertices: 4200, Edges: 21000, FeatureFormat: graph.Bfloat16})
	stretches := func(c *Config) { c.Mode, c.Staleness, c.CheckpointEvery = "async", 1, "1e" }
	gat := func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Hidden = "gat", 2, 3, 4 }
	for name, tc := range hosttest.Share(t, 6, map[string]struct {
		data   string
		ranks  int
		server int
		set    func(*Config)
	}{
		"gcn":                      {dense[false], 3, 1, func(c *Config) {}},
		"gcn, input kept":          {dense[false], 4, 0, func(c *Config) { c.InputDropout = 0 }},
		"gcn, kept in half":        {dense[false], 3, 0, func(c *Config) { c.InputDropout, c.Features, c.Gather = 0, "bf16", "bf16" }},
		"gcn, bfloat16 features":   {half, 3, 0, func(c *Config) { c.Order = "apply-first" }},
		"sage, bfloat16 widened":   {half, 2, 0, func(c *Config) { c.Model, c.Order, c.CacheInput = "sage", "gather-first", "off" }},
		"sage, bfloat16 of ghosts": {half, 3, 0, func(c *Config) { c.Model, c.RecomputeGhosts, c.InputDropout = "sage", "all", 0 }},
		"gcn, one rank, directed":  {dense[true], 1, 0, func(c *Config) { c.Layers = 3 }},
		"gcn, gather first": {dense[true], 3, 0,
			func(c *Config) { c.Order, c.CacheInput, c.Optimizer = "gather-first", "off", "sgd" }},
		"gcn, one layer, directed":  {dense[true], 2, 0, func(c *Config) { c.Layers, c.Momentum, c.Optimizer = 1, 0, "sgd" }},
		"gcn, bag of words":         {sparse, 3, 1, func(c *Config) { c.InputDropout = 0.5 }},
		"gcn, bag in lists":         {sparse, 3, 1, func(c *Config) { c.InputDropout, c.Order, c.Layers = 0.5, "gather-first", 3 }},
		"sage, bag in lists, alone": {sparse, 1, 0, func(c *Config) { c.Model, c.InputDropout, c.Order = "sage", 0.5, "gather-first" }},
		"gcn, bag kept":             {sparse, 3, 0, func(c *Config) { c.InputDropout, c.CacheInput = 0, "on" }},
		"sage":                      {dense[true], 3, 1, func(c *Config) { c.Model, c.Layers = "sage", 3 }},
		"sage, bag of words":        {sparse, 2, 0, func(c *Config) { c.Model, c.InputDropout = "sage", 0 }},
		"gin":                       {dense[false], 3, 1, func(c *Config) { c.Model = "gin" }},
		"gat":                       {dense[false], 3, 1, gat},
		"gatv2":                     {dense[false], 3, 1, func(c *Config) { gat(c); c.Model = "gatv2" }},
		"gat, bag of words":         {sparse, 2, 0, gat},
		"gcnii":                     {dense[true], 3, 1, func(c *Config) { c.Model, c.Layers = "gcnii", 3 }},
		"gcnii, made again":         {dense[false], 3, 1, func(c *Config) { c.Model, c.Layers, c.Recompute = "gcnii", 4, true }},
		"appnp, asynchronous":       {dense[false], 3, 1, func(c *Config) { stretches(c); c.Model, c.Hops = "appnp", 3 }},
		"sign, bag of words":        {sparse, 3, 1, func(c *Config) { c.Model, c.Powers = "sign", 2 }},
		"sign, kept":                {dense[true], 3, 1, func(c *Config) { c.Model, c.InputDropout = "sign", 0 }},
		"sign, kept, made again": {dense[false], 2, 0,
			func(c *Config) { c.Model, c.InputDropout, c.Recompute, c.Layers = "sign", 0, true, 4 }},
		"sign, bag kept in half": {sparse, 3, 0,
			func(c *Config) { c.Model, c.InputDropout, c.CacheInput, c.Features = "sign", 0, "on", "bf16" }},
		"sign, asynchronous, kept": {dense[false], 2, 1,
			func(c *Config) { stretches(c); c.Model, c.InputDropout, c.Powers = "sign", 0, 2 }},
		"sgc, bag of words":           {sparse, 3, 1, func(c *Config) { c.Model = "sgc" }},
		"sgc, kept":                   {dense[false], 3, 1, func(c *Config) { c.Model, c.InputDropout, c.Layers = "sgc", 0, 3 }},
		"sgc, free, kept":             {dense[true], 2, 1, func(c *Config) { c.Mode, c.Model, c.InputDropout = "free", "sgc", 0 }},
		"gcn, residual":               {dense[true], 3, 1, func(c *Config) { c.Residual, c.Layers = "add", 4 }},
		"mlp":                         {dense[false], 3, 1, func(c *Config) { c.Model = "mlp" }},
		"gcn, nothing overlaps":       {dense[false], 3, 0, func(c *Config) { c.Mode = "nopipe" }},
		"gcn, compressed losslessly":  {dense[false], 3, 0, func(c *Config) { c.Codec = "s2" }},
		"gcn, in four bits":           {dense[false], 3, 0, func(c *Config) { c.Codec = "int4" }},
		"sage, what is lost fed back": {dense[true], 3, 0, func(c *Config) { c.Model, c.Layers, c.Codec = "sage", 3, "int4+ef" }},
		"gcn, started from weights":   {dense[false], 2, 1, func(c *Config) { c.Init = weights(t, *c, dense[false]) }},
		"gcn, asynchronous":           {dense[false], 2, 1, stretches},
		"gcn, asynchronous, kept":     {dense[false], 2, 0, func(c *Config) { stretches(c); c.InputDropout, c.Hidden = 0, 8 }},
		"sage, asynchronous":          {dense[true], 3, 1, func(c *Config) { stretches(c); c.Model, c.Layers = "sage", 3 }},
		"gat, asynchronous":           {dense[false], 2, 1, func(c *Config) { stretches(c); gat(c) }},
		"gatv2, asynchronous":         {dense[true], 3, 1, func(c *Config) { stretches(c); gat(c); c.Model = "gatv2" }},
		"gatv2, previous":             {dense[false], 3, 1, func(c *Config) { gat(c); c.Refresh, c.Model = "previous:none", "gatv2" }},
		"gatv2, every second, late": {dense[true], 3, 0,
			func(c *Config) { gat(c); c.Refresh, c.Epochs, c.Model = "every:2,1", 4, "gatv2" }},
		"gatv2, free, goes on": {dense[true], 3, 0,
			func(c *Config) { gat(c); c.Mode, c.CheckpointEvery, c.Model = "free", "1e", "gatv2" }},
		"gcn, previous": {dense[false], 3, 0, func(c *Config) { c.Refresh = "previous:none" }},
		"sage, previous, fed back": {dense[true], 3, 1,
			func(c *Config) { c.Refresh, c.Model, c.Layers, c.Codec = "previous:none", "sage", 3, "int4+ef" }},
		"gat, previous":           {dense[false], 3, 1, func(c *Config) { c.Refresh = "previous:none"; gat(c) }},
		"gat, previous, measured": {dense[true], 3, 0, func(c *Config) { c.Refresh, c.MeasureStaleness = "previous:none", 2; gat(c) }},
		"sage, never, measured":   {dense[true], 3, 1, func(c *Config) { c.Refresh, c.Model, c.MeasureStaleness = "never", "sage", 1 }},
		"gcn, made again": {dense[true], 3, 0,
			func(c *Config) { c.Recompute, c.Layers, c.Hidden, c.Order = true, 6, 16, "gather-first" }},
		"gat, made again": {dense[false], 3, 1, func(c *Config) { gat(c); c.Recompute, c.Layers = true, 4 }},
		"sage-pool": {dense[true], 3, 1,
			func(c *Config) { c.Model, c.Layers, c.RecomputeGhosts = "sage-pool", 3, "none" }},
		"sage-pool, ghosts' features": {sparse, 3, 0,
			func(c *Config) { c.Model, c.PoolHidden, c.RecomputeGhosts = "sage-pool", 5, "layers:1" }},
		"gatv2, computed ghosts": {dense[true], 3, 1,
			func(c *Config) { c.Model, c.Heads, c.RecomputeGhosts = "gatv2", 2, "layers:1" }},
		"sign, computed ghosts": {dense[false], 3, 0,
			func(c *Config) { c.Model, c.Powers, c.CacheInput, c.RecomputeGhosts = "sign", 3, "off", "layers:1" }},
		"gcn, computed ghosts": {dense[true], 3, 0,
			func(c *Config) { c.RecomputeGhosts, c.InputDropout, c.Layers = "layers:1", 0, 3 }},
		"sage, computed ghosts, bf16": {dense[false], 2, 1, func(c *Config) {
			c.Model, c.RecomputeGhosts, c.InputDropout, c.Features, c.Gather = "sage", "all", 0, "bf16", "bf16"
		}},
		"gin, computed ghosts": {sparse, 3, 0, func(c *Config) {
			c.Model, c.Norm, c.RecomputeGhosts, c.CacheInput, c.InputDropout = "gin", "layer", "all", "on", 0
		}},
		"gcn, ghosts of two hops": {dense[true], 4, 0,
			func(c *Config) { c.RecomputeGhosts, c.InputDropout, c.Layers = "layers:2", 0, 4 }},
		"gcn, ghosts of three hops": {dense[false], 2, 1,
			func(c *Config) { c.RecomputeGhosts, c.InputDropout, c.Layers = "layers:3", 0, 4 }},
		"sage, ghosts of two hops": {dense[true], 2, 0, func(c *Config) {
			c.Model, c.RecomputeGhosts, c.Layers, c.Gather, c.Order = "sage", "layers:2", 3, "bf16", "gather-first"
		}},
		"sage, ghosts of three hops": {dense[false], 4, 0, func(c *Config) {
			c.Model, c.RecomputeGhosts, c.Layers, c.Recompute, c.Order = "sage", "layers:3", 5, true, "apply-first"
		}},
		"gin, bag, two hops": {sparse, 4, 0,
			func(c *Config) { c.Model, c.Norm, c.RecomputeGhosts, c.Layers = "gin", "layer", "layers:2", 3 }},
		"gin, three hops": {dense[true], 2, 0,
			func(c *Config) { c.Model, c.Norm, c.RecomputeGhosts, c.Layers = "gin", "layer", "layers:3", 3 }},
		"gcn, bag, three hops": {sparse, 2, 0, func(c *Config) { c.RecomputeGhosts, c.Layers, c.InputDropout = "layers:3", 4, 0.5 }},
		"gcn, bag kept, three hops": {sparse, 4, 0,
			func(c *Config) { c.RecomputeGhosts, c.Layers, c.InputDropout, c.CacheInput = "layers:3", 4, 0, "on" }},
		"sgc, two hops":        {dense[false], 4, 0, func(c *Config) { c.Model, c.RecomputeGhosts, c.Layers = "sgc", "layers:2", 3 }},
		"sgc, bag, three hops": {sparse, 2, 0, func(c *Config) { c.Model, c.RecomputeGhosts, c.Layers = "sgc", "layers:3", 4 }},
		"gcn, weights, two hops": {weighted[false], 2, 0,
			func(c *Config) { c.RecomputeGhosts, c.Layers, c.Gather = "layers:2", 3, "bf16" }},
		"sage, weights, three hops": {weighted[true], 4, 0,
			func(c *Config) { c.Model, c.RecomputeGhosts, c.Layers = "sage", "layers:3", 4 }},
		"gat, two hops": {dense[true], 3, 0, func(c *Config) { gat(c); c.Layers, c.RecomputeGhosts = 3, "layers:2" }},
		"gatv2, weights, two hops": {weighted[true], 2, 1, func(c *Config) {
			gat(c)
			c.Model, c.Layers, c.RecomputeGhosts = "gatv2", 3, "layers:2"
		}},
		"sage-pool, two hops": {dense[false], 2, 0,
			func(c *Config) { c.Model, c.Layers, c.RecomputeGhosts = "sage-pool", 3, "layers:2" }},
		"gcn, half of the ghosts": {dense[true], 2, 0,
			func(c *Config) { c.RecomputeGhosts, c.InputDropout, c.Layers = "layers:0.5", 0, 3 }},
		"gcn, bag, some ghosts": {sparse, 2, 0, func(c *Config) { c.RecomputeGhosts, c.Layers, c.Codec = "layers:0.3", 3, "int4" }},
		"sage, most of the ghosts": {dense[false], 2, 1,
			func(c *Config) { c.Model, c.RecomputeGhosts, c.Codec = "sage", "layers:0.8", "int4+ef" }},
		"gcn, computed ghosts, stale": {dense[true], 3, 0, func(c *Config) {
			c.RecomputeGhosts, c.InputDropout, c.Layers, c.Refresh = "layers:1", 0, 3, "previous:none"
		}},
		"appnp, computed ghosts": {dense[true], 3, 0, func(c *Config) { c.Model, c.Hops, c.RecomputeGhosts = "appnp", 3, "layers:1" }},
		"gcnii, computed ghosts": {dense[false], 3, 1,
			func(c *Config) { c.Model, c.Layers, c.RecomputeGhosts, c.Recompute = "gcnii", 4, "layers:1", true }},
		"sage-pool, asynchronous": {dense[true], 2, 0, func(c *Config) { stretches(c); c.Model = "sage-pool" }},
		"sage-pool, l2, made again": {dense[true], 3, 0,
			func(c *Config) { c.Recompute, c.Layers, c.Model, c.Norm = true, 4, "sage-pool", "l2" }},
		"gcn, never":                {dense[false], 3, 0, func(c *Config) { c.Refresh = "never" }},
		"gat, never":                {dense[true], 3, 1, func(c *Config) { c.Refresh = "never"; gat(c) }},
		"gcn, never, in half":       {dense[true], 3, 1, func(c *Config) { c.Refresh, c.Gather = "never", "bf16" }},
		"gin, bag of words":         {sparse, 2, 0, func(c *Config) { c.Model = "gin" }},
		"gcn, never, few trained":   {dense[true], 3, 0, func(c *Config) { c.Refresh, c.Layers = "never", 1 }},
		"gcn, previous, losslessly": {dense[false], 3, 0, func(c *Config) { c.Refresh, c.Codec = "previous:none", "s2" }},
		"gcn, auto":                 {dense[false], 3, 1, func(c *Config) { c.Refresh = "auto" }},
		"gat, auto":                 {dense[true], 3, 0, func(c *Config) { c.Refresh = "auto"; gat(c) }},
		"gcn, every second":         {dense[false], 3, 0, func(c *Config) { c.Refresh, c.Epochs = "every:2", 4 }},
		"gcn, every second, late":   {dense[false], 3, 0, func(c *Config) { c.Refresh, c.Epochs, c.Codec = "every:2,1", 4, "int4+ef" }},
		"sage, sample":              {dense[true], 3, 1, func(c *Config) { c.Refresh, c.Model = "sample:1", "sage" }},
		"gat, sample in four bits":  {dense[false], 3, 1, func(c *Config) { gat(c); c.Refresh, c.Codec = "sample:1", "int4" }},
		"gat, delay":                {dense[false], 3, 1, func(c *Config) { gat(c); c.Refresh, c.Epochs = "delay:2", 4 }},
		"gcn, drift":                {dense[false], 3, 0, func(c *Config) { c.Refresh, c.Codec = "drift:0", "s2" }},
		"gin, age":                  {dense[false], 3, 0, func(c *Config) { c.Refresh, c.Model, c.Epochs = "age:3,0.5", "gin", 6 }},
		"sage, smoothed":            {dense[true], 3, 1, func(c *Config) { c.Refresh, c.Model, c.Layers = "previous:GF0.5", "sage", 3 }},
		"gcn, predicted":            {dense[false], 3, 0, func(c *Config) { c.Refresh, c.Epochs, c.Predict = "every:2,1", 4, "transfer" }},
		"gat, predicted": {dense[true], 3, 1,
			func(c *Config) { gat(c); c.Refresh, c.Epochs, c.Predict, c.PredictRows = "previous", 3, "transfer", 50 }},
		"gat, compressed": {dense[true], 3, 1, func(c *Config) {
			gat(c)
			c.Refresh, c.Epochs, c.Predict, c.PredictHistory = "delay:2", 4, "transfer", "auto"
		}},
		"gcn, recurrent": {dense[true], 3, 0, func(c *Config) {
			c.Refresh, c.Epochs, c.Layers, c.Predict, c.PredictEvery, c.PredictHold = "every:2", 4, 3, "lstm-gcn", 2, true
		}},
		"sage, recurrent": {dense[false], 3, 1, func(c *Config) {
			c.Model, c.Refresh, c.Epochs, c.Predict, c.PredictEvery, c.PredictWindow = "sage", "delay:2", 6, "gru-gcn", 3, 2
		}},
		"gat, recurrent": {dense[true], 3, 0, func(c *Config) {
			gat(c)
			c.Refresh, c.Epochs, c.Predict, c.PredictEvery, c.PredictRows, c.PredictInput = "previous", 6, "lstm-gat", 2, 50, "past"
		}},
		"gin, predicted": {dense[true], 3, 0, func(c *Config) {
			c.Model, c.Layers, c.Refresh, c.Epochs, c.Predict = "gin", 3, "delay:2", 4, "transfer"
		}},
		"gcn, whole rows": {dense[false], 3, 0,
			func(c *Config) { c.RefreshRows, c.Refresh, c.Epochs, c.Layers = "whole", "every:2", 4, 3 }},
		"gcn, whole, made again": {dense[true], 3, 0, func(c *Config) {
			c.Refresh, c.Epochs, c.Layers, c.Predict, c.Recompute, c.MeasureStaleness = "every:2", 4, 4, "transfer", true, 3
		}},
		"gcn, no gradients": {dense[true], 3, 0, func(c *Config) { c.GhostGradients, c.Layers = "no", 3 }},
		"gcn, previous, no gradients": {dense[true], 3, 0,
			func(c *Config) { c.GhostGradients, c.Refresh, c.Layers = "no", "previous:none", 3 }},
		"gcn, asynchronous, in half":  {dense[true], 3, 0, func(c *Config) { stretches(c); c.Gather, c.Intervals = "bf16", 3 }},
		"gcn, asynchronous, one rank": {dense[false], 1, 0, stretches},
		"gcn, goes on in step":        {dense[false], 2, 1, func(c *Config) { stretches(c); c.SwitchToSync, c.TargetAcc = 1, 0.99 }},
		"mlp, goes on in step": {dense[false], 2, 0,
			func(c *Config) { stretches(c); c.Model, c.SwitchToSync, c.TargetAcc = "mlp", 1, 0.99 }},
		"gat, alone":                {dense[false], 1, 0, gat},
		"gin, many intervals":       {dense[true], 2, 0, func(c *Config) { c.Model, c.Intervals, c.Gather = "gin", 40, "bf16" }},
		"mlp, asynchronous":         {dense[false], 2, 0, func(c *Config) { stretches(c); c.Model = "mlp" }},
		"gcn, rounds":               {dense[false], 3, 0, func(c *Config) { c.LocalEpochs = 2 }},
		"gcn, rounds with a server": {dense[true], 3, 1, func(c *Config) { c.LocalEpochs, c.Refresh = 1, "never" }},
		"gat, rounds and corrections": {dense[true], 3, 2,
			func(c *Config) { c.LocalEpochs, c.Refresh, c.ServerCorrection = 1, "never", 1; gat(c) }},
		"gcn, free":             {dense[false], 3, 1, func(c *Config) { c.Mode, c.Refresh = "free", "every:2" }},
		"gat, free, goes on":    {dense[true], 3, 0, func(c *Config) { c.Mode, c.CheckpointEvery = "free", "1e"; gat(c) }},
		"sage, free, kept":      {dense[true], 2, 1, func(c *Config) { c.Mode, c.Model, c.InputDropout = "free", "sage", 0 }},
		"mlp, bag of words":     {sparse, 2, 0, func(c *Config) { c.Model = "mlp" }},
		"gcn, links":            {linked(t, false), 3, 1, func(c *Config) { c.Embedding = 7 }},
		"sage, links, directed": {linked(t, true), 2, 0, func(c *Config) { c.Model, c.EvalEvery = "sage", 0 }},
	}) {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.Hidden, c.PreAggregate = tc.ranks+tc.server, tc.server, 3, 20, "off"
			tc.set(&c)
			run := train(t, c, tc.data).Summary
			f, parts := foreseen(t, c, tc.data, tc.ranks, tc.server)
			for rank, got := range run.PerRank {
				want := f.ServerRank(tc.ranks)
				if rank < tc.ranks {
					want = f.GraphRank(rank, parts[rank])
				}
				// Arrays of one term may be rounded up together; the smallest that
				// could have been forgotten is four times as large.
				slack := int64(1024)
				if d := got.ArrayBytes - want.Of(forecast.Array); d < -slack || d > slack {
					t.Errorf("rank %d made arrays of %d bytes, estimated were %d: %+v", rank, got.ArrayBytes, want.Of(forecast.Array), want)
				}
			}
			if c.Asynchronous() || c.Refresh == "auto" {
				return // its rows are sent with interval numbers, or later
			}
			wire := f.Traffic(parts)
			if raw := run.GhostBytesRaw / int64(c.Epochs); raw != wire.Raw {
				t.Errorf("%d raw bytes an epoch, estimated were %d", raw, wire.Raw)
			}
			sent := run.GhostBytesSent / int64(c.Epochs)
			if wire.Exact && sent != wire.Sent || sent > wire.Sent ||
				wire.Exact != (c.Codec != "s2" && c.Refresh != "drift:0" && c.Refresh != "delay:2") {
				t.Errorf("%d bytes sent in an epoch, estimated were %d (exactly: %t)", sent, wire.Sent, wire.Exact)
			}
		})
	}
}

// The memory of a fraction of the ghosts of a second layer is bounded from above, by less than a
// half. The bytes of rows are exact.
func TestForecastOfFractions(t *testing.T) {
	t.Parallel()
	data := planted(t, generate.Options{Vertices: 4200, Edges: 21000, Directed: true})
	for _, how := range []string{"layers:1.25", "layers:1.7", "layers:2.5"} {
		c := quick(t)
		c.Ranks, c.Servers, c.Epochs, c.Hidden, c.Layers, c.InputDropout, c.RecomputeGhosts, c.PreAggregate = 3, 0, 3, 20, 4, 0, how, "off"
		run := train(t, c, data).Summary
		f, parts := foreseen(t, c, data, 3, 0)
		for rank, got := range run.PerRank {
			if want := f.GraphRank(rank, parts[rank]).Of(forecast.Array); got.ArrayBytes > want || got.ArrayBytes < want*2/3 {
				t.Errorf("%s, rank %d: arrays of %d bytes, estimated were %d", how, rank, got.ArrayBytes, want)
			}
		}
		if raw, want := run.GhostBytesRaw/int64(c.Epochs), f.Traffic(parts).Raw; raw != want {
			t.Errorf("%s: %d bytes of rows, estimated were %d", how, raw, want)
		}
	}
}

// weights returns the weights file of a run of c.
func weights(t *testing.T, c Config, data string) string {
	t.Helper()
	c.Out = filepath.Join(t.TempDir(), "before")
	train(t, c, data)
	return modelFile(c.Out)
}

// A run that cannot fit is refused before it begins; one that may not fit causes a warning.
func TestMemoryIsChecked(t *testing.T) {
	const vertices = 60000
	data, there := planted(t, generate.Options{Vertices: vertices, Edges: vertices}), host.AvailableMemory()
	if there == host.Unlimited {
		t.Skip("this system does not say what memory it has")
	}
	c := quick(t)
	c.Ranks, c.Servers, c.InputDropout = 2, 0, 0
	c.Hidden = int(there/(2*vertices)) + 1 // one matrix with a row per vertex is twice the available memory
	err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: os.Stderr})
	if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "--force-memory") {
		t.Errorf("%v", err)
	}
	for _, tc := range []struct {
		peak, certain, there int64
		want                 memoryVerdict
	}{{9, 5, 10, fits}, {10, 10, 10, fits}, {11, 10, 10, doubts}, {12, 11, 10, refuse},
		{12, 11, 0, refuse}, {12, 0, 0, doubts}, {12, 11, host.Unlimited, fits}, {size.Most, size.Most, host.Unlimited, refuse}} {
		if got := compareMemory(tc.peak, tc.certain, tc.there); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// peakChild names the dataset that a child of a test trains on.
const peakChild = "PEAK_CHILD_DATA"

// bigRun returns a run with more data than program memory.
func bigRun(t *testing.T, model string) Config {
	c := quick(t)
	c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.Hidden, c.Model = 1, 0, 1, 2, 0, 144, model
	return c
}

// The actual memory of a process is the estimated data and the program. The allowance for the
// program is generous: under mpirun it contains Open MPI, but not here.
func TestPeakMemoryIsEstimated(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("under the race detector arrays are on the heap, beside the detector's own memory")
	}
	if data := os.Getenv(peakChild); data != "" {
		c := bigRun(t, os.Getenv(peakChild+"_MODEL"))
		fmt.Println("peak", train(t, c, data).Summary.PeakRSSBytes)
		return
	}
	data := planted(t, generate.Options{Vertices: 60000, Edges: 600000})
	partitionBy(t, data, "hash", 1)
	for _, model := range []string{"gcn", "gat"} {
		t.Run(model, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestPeakMemoryIsEstimated$")
			cmd.Env = append(os.Environ(), peakChild+"="+data, peakChild+"_MODEL="+model)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got int64
			if _, err := fmt.Sscanf(string(out), "peak %d", &got); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			f, parts := foreseen(t, bigRun(t, model), data, 1, 0)
			data := f.GraphRank(0, parts[0]).Peak()
			const more = 4 << 20 // pages of the test program beyond those of siafu
			if rest := got - data; rest < 4e6 || rest > forecast.Program+more || data < forecast.Program {
				t.Errorf("%d bytes, estimated were %d of data and at most %d of the program", got, data, forecast.Program)
			}
		})
	}
}

// planted returns a generated graph with 12 features and 4 classes.
func planted(t *testing.T, o generate.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "planted")
	o.Features, o.Classes, o.Seed = 12, 4, 5
	if _, err := generate.Write(dir, o, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bag returns a graph with one to three sparse features per vertex.
func bag(t *testing.T) string { return bagOf(t, 400) }

func bagOf(t *testing.T, n int) string {
	t.Helper()
	c := randomContent(n, 3)
	x := &graph.SparseRows{Offsets: []int64{0}}
	for v := range n {
		for k := range 1 + v%3 {
			x.Cols, x.Vals = append(x.Cols, uint32((v*7)%30+k*31)), append(x.Vals, 1)
		}
		x.Offsets = append(x.Offsets, int64(len(x.Cols)))
	}
	c.Features = graph.Features{Rows: n, Dim: 100, Sparse: x}
	return write(t, c)
}
