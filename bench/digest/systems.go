package digest

import (
	"slices"
	"strings"

	"siafu/internal/fault"
)

// System is a training method, by its published name.
type System struct {
	Name  string
	Flags []string // of train, after the bench's flags
	// Timely means that accuracy depends on ranks' speeds, or time on the epoch, so that whole
	// runs over the link are needed.
	Timely  bool
	Servers int // required servers
	Period  int // epochs of a complete cycle; 0: at most 10
	// UnitRows adds --norm l2, for networks that take it.
	UnitRows bool
	// Networks lists the networks that it trains; empty: all.
	Networks []string
	Source   string
}

func system(name, flags, source string) System {
	return System{Name: name, Flags: strings.Fields(flags), Source: source}
}

// exact returns exact training with overlap of exchange and computation.
func exact() System {
	return system("exact", "--refresh always --recompute-ghosts none", "exchange behind computation")
}

// Systems returns all systems. The first is the reference: exact, waiting for every exchange,
// like DGL's distributed training without sampling.
func Systems() []System {
	async := system("DIGEST-A", "--mode free --refresh every:10", "DIGEST §3.2")
	async.Timely, async.Servers = true, 1
	rows := system("DIGEST-rows", "--refresh every:10,9 --ghost-gradients no --local-epochs 1", "DIGEST, algorithm 1; --norm l2 is its line 11, for networks without attention")
	rows.UnitRows = true
	auto := system("auto", "--refresh auto", "siafu's choice, by times and losses")
	auto.Timely = true
	clusters := system("GNNAutoScale", "--batch history:8", "Fey et al., ICML'21")
	clusters.Networks = []string{"gcn", "sage", "gin"}
	variates := system("VR-GCN", "--batch variates:8,2", "Chen et al., ICML'18")
	variates.Networks = []string{"gcn"}
	sampled := system("DistDGL", "--batch neighbor:25,10", "Zheng et al., IA3'20: DGL's sampling")
	cut := system("Cluster-GCN", "--batch cluster:32,4", "Chiang et al., KDD'19")
	sampled.Networks = []string{"gcn", "sage", "gin", "gat", "gatv2", "gcnii"}
	cut.Networks = append(sampled.Networks, "appnp")
	walks := system("GraphSAINT", "--batch saint:2000", "Zeng et al., ICLR'20")
	walks.Networks = cut.Networks
	some := system("approximation", "--batch approximate:0.1", "Angerd et al., arXiv 2012.04930: own vertices and a tenth of the others")
	some.Networks = cut.Networks
	return []System{
		system("exact-wait", "--refresh always --mode nopipe --recompute-ghosts none", "what DGL does"),
		exact(),
		system("exact-computed", "--refresh always --recompute-ghosts auto", "exact, with the ghost rows of the first gather computed where that is cheaper, after the hybrid of NeutronStar, Wang et al., SIGMOD'22"),
		system("DIGEST", "--refresh every:10", "DIGEST, algorithm 1, N = 10; ghosts' gradients travel with their rows"),
		rows,
		async,
		system("LLCG", "--refresh never --local-epochs 4 --server-correction 1 --correction-batch 2000", "Ramezani et al., ICLR'22"),
		system("PipeGCN", "--refresh previous:none", "Wan et al., ICLR'22"),
		system("PipeGCN-GF", "--refresh previous:GF0.95", "the same, both smoothed"),
		system("BNS-GCN", "--refresh sample:0.1", "Wan et al., MLSys'22"),
		system("DistGNN", "--refresh delay:5", "Md et al., SC'21, cd-5"),
		system("SANCUS", "--refresh drift:0.05", "Peng et al., VLDB'22"),
		system("REST", "--refresh age:5", "Xue et al. 2024"),
		system("PipeQS", "--refresh previous:none --codec int8", "quantised and stale"),
		clusters,
		variates,
		sampled,
		cut,
		walks,
		some,
		system("partition-only", "--refresh never", "no exchange"),
		auto,
	}
}

// chosen returns the systems with these names (none: all), in the order of Systems, and always
// the first one.
func chosen(names []string) ([]System, error) {
	all := Systems()
	if len(names) == 0 {
		return all, nil
	}
	var list []System
	var known []string
	for k, s := range all {
		known = append(known, s.Name)
		if k == 0 || slices.Contains(names, s.Name) {
			list = append(list, s)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fault.New(fault.Usage, op, "", "--systems has %q", n).Then("choose from %s", strings.Join(known, ", "))
		}
	}
	return list, nil
}
