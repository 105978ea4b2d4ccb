package dorylus

import (
	"fmt"
	"io"
	"slices"

	"siafu/bench/trials"
)

// parts returns the parts in the order of the paper; model is our own.
func (b *bench) parts() []trials.Part {
	return []trials.Part{
		{Name: "table1", Title: "graphs", Write: b.table1,
			Paper: "four graphs, two of them with billions of edges",
			Why: "synthetic graphs have the published counts times a scale, Reddit's fewer edges where a scaled graph would be nearly " +
				"complete; the paper's average degrees of reddit-large and friendster are those of undirected edges, ours of stored ones"},
		{Name: "table2", Title: "value of instance types", Write: b.table2,
			Paper: "c5n.2xlarge is worth 4.46 times as much as r5.2xlarge on Reddit-large, and 2.72 times as " +
				"much as r5.xlarge on Amazon; " +
				"p3.2xlarge 4.93 times as much as p2.xlarge",
			Why: "modelled from processors, cards and prices alone; memory that runs short and slower processors of r5 are not in it; " +
				"GPUs are a roofline of their published figures"},
		{Name: "table3", Title: "clusters", Write: b.table3,
			Paper: "so many servers that graph and tensors just fit",
			Why: "siafu keeps no copy of a tensor that it can make again in place, so that it needs fewer servers; arrays are scaled " +
				"from those of the runs here, shards are counted at the published size"},
		{Name: "figure5", Title: "epochs to accuracy by mode", Write: b.figure5,
			Paper: "bounded asynchrony needs 8 % more epochs with s=0 and 41 % more with s=1, and reaches the same accuracy",
			Why: "synthetic graphs, fewer servers, and intervals of a scaled graph: how many rows are stale depends on all of them; " +
				"rows without a wait are the paper's method, the others wait up to an epoch's time for fresh rows (--linger 1)"},
		{Name: "figure6", Title: "time of an epoch by mode", Write: b.figure6,
			Paper: "async takes about 15 % less than pipe with either s; no-pipe 1.9 times as long (§7.6)",
			Why:   "ranks and functions share this machine's processors, so that work which overlaps takes no less of them"},
		{Name: "section7.3", Title: "time and value of bounded asynchrony to the target", Write: b.section73,
			Paper: "s=0 is 1.234 times as fast as pipe and 1.233 times as fast as s=1, with 1.288 and 1.494 times their values",
			Why:   "as figures 5 and 6"},
		{Name: "table4", Title: "time and cost by mode and graph", Write: b.table4,
			Paper: "Dorylus is faster and cheaper than CPUs on large sparse graphs, GPUs are on small dense ones",
			Why: "measured on a scaled graph and this machine; modelled for the paper's graph and cluster from those measurements with " +
				"perfect overlap, and the epochs that the synthetic graph needs; GPUs are a roofline of the published figures of a V100"},
		{Name: "figure7", Title: "value by mode and graph", Write: b.figure7,
			Paper: "up to 2.75 times the value of CPUs (GAT on Amazon)",
			Why:   "as table 4"},
		{Name: "figure8", Title: "scaling out, GCN on Amazon", Write: b.figure8,
			Paper: "from 4 to 16 servers Dorylus is 2.82 times as fast for 5 % more, 2.68 times the value",
			Why: "modelled without barriers and stragglers, and simulated from the timeline of a run here, whose waits are in it, with " +
				"servers of the paper's processors and cards and functions at 10 ms each"},
		{Name: "section7.4", Title: "exchange of ghost rows in an epoch, no-pipe", Write: b.section74,
			Paper: "Scatter takes a larger fraction of an epoch on Amazon and Friendster than on the Reddit graphs, and " +
				"takes longer on GPUs (no numbers)",
			Why: "measured, workers without a task also wait for slower ranks and for functions; modelled, " +
				"network cards and, on GPUs, buses"},
		{Name: "figure9", Title: "accuracy over time", Write: b.figure9,
			Paper: "Dorylus ends at 95.44 and 67.01 %, above DGL's and AliGraph's sampling; DGL without sampling is fast where it fits",
			Why:   "sampling is siafu's own with the same kernels, and none of it pays for another program's overhead"},
		{Name: "table5", Title: "time and cost to a target accuracy", Write: b.table5,
			Paper: "on Amazon Dorylus is 1.99 times as fast as DGL with sampling, and 17.7 times its value",
			Why:   "on this machine and a scaled graph, to a target as far below the best accuracy as the paper's"},
		{Name: "figure10a", Title: "where the time of an epoch goes, no-pipe", Write: b.figure10a,
			Paper: "GA, AV and ∇AV take most of it; functions are worst at AV and GPUs best (a figure without numbers)",
			Why:   "processors are shared with the functions; gathers are as fast with functions as without"},
		{Name: "figure10b", Title: "what servers and functions cost", Write: b.figure10b,
			Paper: "functions cost about as much as servers (a figure without numbers)",
			Why: "measured dollars are of this machine as --instance and of functions as if in AWS; modelled ones " +
				"of the paper's eight servers"},
		{Name: "model", Title: "what modelled numbers are made from", Write: b.basis,
			Why: "the last column holds the model against runs on this machine: the same work on its processors, without and with overlap"},
	}
}

// groups are the lines of all charts.
var groups = []string{pipe.name, async0.name, async1.name, hasty0.name, hasty1.name, "DGL (sampling)", "DGL (non-sampling)", "Cluster-GCN",
	"GNNAutoScale", "VR-GCN", functions.name, cpuOnly.name, gpuOnly.name}

func groupOf(name string) int {
	if name == "Dorylus (GPU only)" { // in figure 9
		name = gpuOnly.name
	}
	return max(slices.Index(groups, name), 0)
}

// reasons writes why requested backends were not run.
func (b *bench) reasons(w io.Writer) {
	slices.Sort(b.without)
	for _, name := range slices.Compact(b.without) {
		fmt.Fprintf(w, "%s, not run: %s\n", name, b.lacks[name])
	}
	slices.Sort(b.short)
	for _, why := range slices.Compact(b.short) {
		fmt.Fprintf(w, "-, modelled: %s\n", why)
	}
	b.without, b.short = nil, nil
}
