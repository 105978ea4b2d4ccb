package dorylus

import (
	"slices"

	"siafu/bench/trials"
)

// parts returns the parts in the order of the paper; model is our own.
func (b *bench) parts() []trials.Part {
	list := append(b.trainingParts(), b.scalingParts()...)
	for k, p := range list {
		list[k].Write = func(s *trials.Sheet) {
			p.Write(s)
			for _, why := range b.short {
				s.Note("-, modelled: " + why)
			}
			b.short = nil
		}
	}
	return list
}

// trainingParts returns the parts about graphs, clusters, modes and costs.
func (b *bench) trainingParts() []trials.Part {
	return []trials.Part{
		{Name: "table1", Title: "graphs", Write: b.table1,
			Columns: []string{"graph", "vertices, paper", "edges, paper", "# features", "# labels", "avg. degree", "here", "vertices",
				"edges", "# features", "# labels", "avg. degree|%.1f"},
			Paper: "four graphs, two of them with billions of edges",
			Why: "synthetic graphs have the published counts times a scale, Reddit's fewer edges where a scaled graph would be nearly " +
				"complete; the paper's average degrees of reddit-large and friendster are those of undirected edges, ours of stored ones"},
		{Name: "table2", Title: "value of instance types", Write: b.table2,
			Columns: []string{"backend", "graph", "instance type", "$/h|%.3f", "relative value, paper|%.2f", "s/epoch, modelled|%.4f",
				"$/epoch, modelled|%.3g", "relative value, modelled|%.2f"},
			Paper: "c5n.2xlarge is worth 4.46 times as much as r5.2xlarge on Reddit-large, and 2.72 times as " +
				"much as r5.xlarge on Amazon; " +
				"p3.2xlarge 4.93 times as much as p2.xlarge",
			Why: "modelled from processors, cards and prices alone; memory that runs short and slower processors of r5 are not in it; " +
				"GPUs are a roofline of their published figures"},
		{Name: "table3", Title: "clusters", Write: b.table3,
			Columns: []string{"model", "graph", "CPU cluster", "GPU cluster", "CPU $/h|%.3f", "GPU $/h|%.2f", "GiB of the CPU cluster|%.0f",
				"siafu's arrays and shards GiB, scaled|%.1f", "servers that these need, scaled|%.0f", "GB of a GPU, modelled|%.1f",
				"of|%.0f"},
			Paper: "so many servers that graph and tensors just fit",
			Why: "siafu keeps no copy of a tensor that it can make again in place, so that it needs fewer servers; arrays are scaled " +
				"from those of the runs here, shards are counted at the published size"},
		{Name: "figure5", Title: "epochs to accuracy by mode", Write: b.figure5,
			Columns: []string{"graph", "mode", "validation accuracy, measured", "target|%.2f", "epochs to it, measured|%.0f", "R, measured",
				"old weights, old gathers, measured", "R, paper|%.2f", "accuracy, paper|%.2f"},
			Paper: "bounded asynchrony needs 8 % more epochs with s=0 and 41 % more with s=1, and reaches the same accuracy",
			Why: "synthetic graphs, fewer servers, and intervals of a scaled graph: how many rows are stale depends on all of them; " +
				"rows without a wait are the paper's method, the others wait up to an epoch's time for fresh rows (--mode linger=1)"},
		{Name: "figure6", Title: "time of an epoch by mode", Write: b.figure6,
			Columns: []string{"graph", "tensor work", "pipe s/epoch, measured|%.4f", "no-pipe to pipe, measured|%.2f",
				"async (s=0) to pipe, measured|%.2f", "async (s=1) to pipe, measured|%.2f", "no-pipe to pipe, modelled|%.2f",
				"no-pipe to pipe, paper", "async (s=0 and 1) to pipe, paper"},
			Paper: "async takes about 15 % less than pipe with either s; no-pipe 1.9 times as long (§7.6)",
			Why:   "ranks and functions share this machine's processors, so that work which overlaps takes no less of them"},
		{Name: "section7.3", Title: "time and value of bounded asynchrony to the target", Write: b.section73,
			Columns: []string{"graph", "s/epoch of pipe, s=0 and s=1, measured", "epochs to target", "time of pipe to s=0, measured|%.3f",
				"of s=1 to s=0, measured|%.3f", "value of s=0 to pipe, measured|%.3f", "to s=1, measured|%.3f",
				"times, paper", "values, paper"},
			Paper: "s=0 is 1.234 times as fast as pipe and 1.233 times as fast as s=1, with 1.288 and 1.494 times their values",
			Why:   "as figures 5 and 6"},
		{Name: "table4", Title: "time and cost by mode and graph", Write: b.table4,
			Columns: []string{"model", "graph", "mode", "epochs, measured|%.0f", "s/epoch, measured|%.4f", "time s, measured|%.1f",
				"cost $, measured|%.3g", "time s, modelled|%.1f", "cost $, modelled|%.3g", "time s, paper|%.1f", "cost $, paper|%.3g"},
			Paper: "Dorylus is faster and cheaper than CPUs on large sparse graphs, GPUs are on small dense ones",
			Why: "measured on a scaled graph and this machine; modelled for the paper's graph and cluster from those measurements with " +
				"perfect overlap, and the epochs that the synthetic graph needs; GPUs are a roofline of the published figures of a V100"},
		{Name: "figure7", Title: "value by mode and graph", Write: b.figure7,
			Columns: []string{"model", "graph", "mode", "value to CPU only, measured|%.3g", "modelled|%.3g", "paper|%.2f",
				"value to GPU only, modelled|%.3g", "value to GPU only, paper|%.2f"},
			Paper: "up to 2.75 times the value of CPUs (GAT on Amazon)",
			Why:   "as table 4"},
	}
}

// scalingParts returns the parts about scaling out, accuracy over time and the time of tasks.
func (b *bench) scalingParts() []trials.Part {
	return []trials.Part{
		{Name: "figure8", Title: "scaling out, GCN on Amazon", Write: b.figure8,
			Columns: []string{"servers", "mode", "s/epoch, modelled|%.4f", "performance, modelled|%.2f", "value, modelled|%.2f",
				"s/epoch, simulated|%.4f", "performance, simulated|%.2f", "value, simulated|%.2f", "performance, paper|%.2f",
				"value, paper|%.2f", "time to CPU only on twice the servers, modelled|%.2f", "simulated|%.2f", "paper|%.2f"},
			Paper: "from 4 to 16 servers Dorylus is 2.82 times as fast for 5 % more, 2.68 times the value",
			Why: "modelled without barriers and stragglers, and simulated from the timeline of a run here, whose waits are in it, with " +
				"servers of the paper's processors and cards and functions at 10 ms each"},
		{Name: "section7.4", Title: "exchange of ghost rows in an epoch, no-pipe", Write: b.section74,
			Columns: []string{"graph", "mode", "ghosts to own vertices, measured|%.2f", "without a task, of an epoch, measured|%.2f",
				"exchange, of an epoch, modelled|%.2f", "Scatter of an epoch, paper"},
			Paper: "Scatter takes a larger fraction of an epoch on Amazon and Friendster than on the Reddit graphs, and " +
				"takes longer on GPUs (no numbers)",
			Why: "measured, workers without a task also wait for slower ranks and for functions; modelled, " +
				"network cards and, on GPUs, buses"},
		{Name: "figure9", Title: "accuracy over time", Write: b.figure9,
			Columns: slices.Concat([]string{"graph", "system", "here", "s/epoch, measured|%.4f", "s/epoch, modelled|%.4f"},
				trials.Columns("at %g %% of CPU only's time|%%.2f", percents),
				[]string{"best validation accuracy, measured", "best accuracy, paper|%.2f"}),
			Paper: "Dorylus ends at 95.44 and 67.01 %, above DGL's and AliGraph's sampling; DGL without sampling is fast where it fits",
			Why:   "sampling is siafu's own with the same kernels, and none of it pays for another program's overhead"},
		{Name: "table5", Title: "time and cost to a target accuracy", Write: b.table5,
			Columns: []string{"graph", "system", "here", "target|%.2f", "epochs, measured|%.0f", "time s, measured|%.2f",
				"cost $, measured|%.3g", "value to Dorylus, measured|%.3g", "time s, modelled|%.2f", "cost $, modelled|%.3g",
				"value to Dorylus, modelled|%.3g", "time s, paper|%.2f", "cost $, paper|%.3g", "value to Dorylus, paper|%.2f",
				"value of Dorylus to it, measured|%.3g", "value of Dorylus to it, paper|%.1f"},
			Paper: "on Amazon Dorylus is 1.99 times as fast as DGL with sampling, and 17.7 times its value",
			Why:   "on this machine and a scaled graph, to a target as far below the best accuracy as the paper's"},
		{Name: "figure10a", Title: "where the time of an epoch goes, no-pipe", Write: b.figure10a,
			Paper: "GA, AV and ∇AV take most of it; functions are worst at AV and GPUs best (a figure without numbers)",
			Why:   "processors are shared with the functions; gathers are as fast with functions as without"},
		{Name: "figure10b", Title: "what servers and functions cost", Write: b.figure10b,
			Columns: []string{"variant", "s/epoch, measured|%.4f", "servers $/epoch, measured|%.3g", "functions $/epoch, measured|%.3g",
				"s/epoch, modelled|%.4f", "servers $/epoch, modelled|%.3g", "functions $/epoch, modelled|%.3g", "paper"},
			Paper: "functions cost about as much as servers (a figure without numbers)",
			Why: "measured dollars are of this machine as --instance and of functions as if in AWS; modelled ones " +
				"of the paper's eight servers"},
		{Name: "model", Title: "what modelled numbers are made from", Write: b.basis,
			Columns: []string{"model", "graph", "edges larger|%.1f", "vertices larger|%.1f", "graph work, processor-s|%.2f",
				"tensor work, processor-s|%.2f", "rows MB of a rank|%.1f", "functions MB|%.1f", "invocations|%.0f",
				"no-pipe here, modelled to measured|%.2f", "pipe here, modelled to measured|%.2f"},
			Why: "the last column holds the model against runs on this machine: the same work on its processors, without and with overlap"},
	}
}

// groups are the lines of all charts.
var groups = []string{pipe.name, async0.name, async1.name, noWait0.name, noWait1.name, "DGL (sampling)", nonSampling, "Cluster-GCN",
	"GNNAutoScale", "VR-GCN", functions.name, cpuOnly.name, gpuOnly.name}

func groupOf(name string) int {
	if name == "Dorylus (GPU only)" { // in figure 9
		name = gpuOnly.name
	}
	return max(slices.Index(groups, name), 0)
}
