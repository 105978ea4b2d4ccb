package digest

import (
	"slices"
	"strings"

	"siafu/bench/trials"
)

func system(name, flags string) trials.System {
	return trials.System{Name: name, Flags: strings.Fields(flags)}
}

// exact returns exact training with overlap of exchange and computation.
func exact() trials.System { return system("exact", "--refresh always --recompute-ghosts none") }

// Systems returns all systems. The first is the reference: exact, waiting for every exchange,
// like DGL's distributed training without sampling.
func Systems() []trials.System {
	words := strings.Fields
	sampled := words("gcn sage gin gat gatv2 gcnii")
	subgraphs := append(sampled, "appnp")
	return []trials.System{
		system("exact-wait", "--refresh always --mode nopipe --recompute-ghosts none"),
		exact(),
		// Exact, with the ghost rows of the first gather computed where that is cheaper, after the
		// hybrid of NeutronStar (Wang et al., SIGMOD'22).
		system("exact-computed", "--refresh always --recompute-ghosts auto"),
		system("DIGEST", "--refresh every:10"), // algorithm 1, N = 10; ghosts' gradients travel with their rows
		// Algorithm 1. --norm l2 is its line 11, for networks without attention.
		{Name: "DIGEST-rows", Flags: words("--refresh every:10,9,gradients=no --local-epochs 1"), UnitRows: true},
		{Name: "DIGEST-A", Flags: words("--mode free --refresh every:10"), Timely: true, Servers: 1}, // DIGEST §3.2
		system("LLCG", "--refresh never --local-epochs 4:correction=1,correction-batch=2000"),        // Ramezani et al., ICLR'22
		system("PipeGCN", "--refresh previous:none"),                                                 // Wan et al., ICLR'22
		system("PipeGCN-GF", "--refresh previous:GF0.95"),                                            // the same, both smoothed
		system("BNS-GCN", "--refresh sample:0.1"),                                                    // Wan et al., MLSys'22
		system("DistGNN", "--refresh delay:5"),                                                       // Md et al., SC'21, cd-5
		system("SANCUS", "--refresh drift:0.05"),                                                     // Peng et al., VLDB'22
		system("REST", "--refresh age:5"),                                                            // Xue et al. 2024
		system("PipeQS", "--refresh previous:none --codec int8"),                                     // quantised and stale
		{Name: "GNNAutoScale", Flags: words("--batch history:8"), Networks: words("gcn sage gin")},   // Fey et al., ICML'21
		{Name: "VR-GCN", Flags: words("--batch variates:8,2"), Networks: words("gcn")},               // Chen et al., ICML'18
		// Zheng et al., IA3'20: DGL's sampling
		{Name: "DistDGL", Flags: words("--batch neighbor:25,10"), Networks: sampled},
		{Name: "Cluster-GCN", Flags: words("--batch cluster:32,4"), Networks: subgraphs}, // Chiang et al., KDD'19
		{Name: "GraphSAINT", Flags: words("--batch saint:2000"), Networks: subgraphs},    // Zeng et al., ICLR'20
		// Angerd et al., arXiv 2012.04930: own vertices and a tenth of the others.
		{Name: "approximation", Flags: words("--batch approximate:0.1"), Networks: subgraphs},
		system("partition-only", "--refresh never"),
		{Name: "auto", Flags: words("--refresh auto"), Timely: true}, // siafu's choice, by times and losses
	}
}

// chosen returns the systems with these names (none: all), in the order of Systems, and always
// the first one.
func chosen(names []string) ([]trials.System, error) {
	all := Systems()
	if len(names) == 0 {
		return all, nil
	}
	var list []trials.System
	var known []string
	for k, s := range all {
		known = append(known, s.Name)
		if k == 0 || slices.Contains(names, s.Name) {
			list = append(list, s)
		}
	}
	return list, trials.CheckNames(op, "systems", names, known)
}
