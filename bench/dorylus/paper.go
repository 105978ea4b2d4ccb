package dorylus

// paperGraph is a graph of table 1.
type paperGraph struct {
	name             string
	vertices, edges  float64
	features, labels int
	degree           float64    // as printed
	scale            float64    // of the synthetic graph
	accuracy         float64    // figure 5, in percent; 0: none, because Friendster's labels are random
	ratio            [2]float64 // R of s = 0 and s = 1
	homophily, noise float64    // of figure 5's synthetic graph
}

// table1 writes the graphs in their order.
//
// The presets of the synthetic graphs are learned in 4 to 16 epochs, too few for staleness to
// cost any. Figure 5 has graphs of lower homophily and more noise, at which a GCN with Adam at
// 0.01 has about the same accuracy after 20 to 40 epochs.
var table1 = []paperGraph{
	{"reddit-small", 232.9e3, 114.8e6, 602, 41, 492.9, 0.05, 94.96, [2]float64{1.00, 1.07}, 0.28, 4},
	{"reddit-large", 1.1e6, 1.3e9, 301, 50, 645.4, 0.01, 60.07, [2]float64{1.14, 1.58}, 0.155, 4},
	{"amazon", 9.2e6, 313.9e6, 300, 25, 35.1, 0.01, 64.08, [2]float64{1.09, 1.57}, 0.27, 2},
	{"friendster", 65.6e6, 3.6e9, 32, 50, 27.5, 0.002, 0, [2]float64{}, 0, 0},
}

// machine is an EC2 instance by its specification: virtual processors, memory in GiB, and
// maximum network rate in Gbit/s. Prices are in package bill.
type machine struct {
	processors, memory, network float64
}

var machines = map[string]machine{
	"c5.2xlarge":  {8, 16, 10},
	"c5n.2xlarge": {8, 21, 25},
	"c5n.4xlarge": {16, 42, 25},
	"r5.xlarge":   {4, 32, 10},
	"r5.2xlarge":  {8, 64, 10},
	"p2.xlarge":   {4, 61, 1.25},
	"p3.2xlarge":  {8, 61, 10},
}

// cluster is a number of machines of one type.
type cluster struct {
	instance string
	count    int
}

// work is a row of tables 3 and 4: a network, a graph, and the clusters.
type work struct {
	model, graph string
	cpu, gpu     cluster
	printed      [3]timeAndCost // Dorylus, CPU only, GPU only
	synchronous  bool           // Dorylus, for which it was its best mode
}

func (w work) cluster(on backend) cluster {
	if on.name == gpuOnly.name {
		return w.gpu
	}
	return w.cpu
}

// timeAndCost is a time in seconds and its dollars.
type timeAndCost struct{ seconds, usd float64 }

// table4 writes the networks and graphs in their order, with the clusters of table 3.
var table4 = []work{
	{"gcn", "reddit-small", cluster{"c5.2xlarge", 2}, cluster{"p3.2xlarge", 2},
		[3]timeAndCost{{860.6, 0.20}, {1005.4, 0.19}, {162.9, 0.28}}, false},
	{"gcn", "reddit-large", cluster{"c5n.2xlarge", 12}, cluster{"p3.2xlarge", 12},
		[3]timeAndCost{{1020.1, 1.69}, {1290.5, 1.85}, {324.9, 3.31}}, true},
	{"gcn", "amazon", cluster{"c5n.2xlarge", 8}, cluster{"p3.2xlarge", 8},
		[3]timeAndCost{{512.7, 0.79}, {710.2, 0.68}, {385.3, 2.62}}, false},
	{"gcn", "friendster", cluster{"c5n.4xlarge", 32}, cluster{"p3.2xlarge", 32},
		[3]timeAndCost{{1133.3, 13.8}, {1990.8, 15.3}, {1490.4, 40.5}}, false},
	{"gat", "reddit-small", cluster{"c5.2xlarge", 10}, cluster{"p3.2xlarge", 10},
		[3]timeAndCost{{496.3, 1.15}, {1270.4, 1.20}, {130.9, 1.11}}, false},
	{"gat", "amazon", cluster{"c5n.2xlarge", 12}, cluster{"p3.2xlarge", 12},
		[3]timeAndCost{{853.4, 2.67}, {2092.7, 3.01}, {1039.2, 10.60}}, false},
}

// choice is a row of table 2.
type choice struct {
	backend, graph string
	cluster
	value float64 // as printed, relative to the preceding row or to itself
	first bool    // of the two compared
}

var table2 = []choice{
	{"CPU", "reddit-large", cluster{"r5.2xlarge", 4}, 1, true},
	{"CPU", "reddit-large", cluster{"c5n.2xlarge", 12}, 4.46, false},
	{"CPU", "amazon", cluster{"r5.xlarge", 4}, 1, true},
	{"CPU", "amazon", cluster{"c5n.2xlarge", 8}, 2.72, false},
	{"GPU", "amazon", cluster{"p2.xlarge", 8}, 1, true},
	{"GPU", "amazon", cluster{"p3.2xlarge", 8}, 4.93, false},
}

// table5 has the paper's numbers by graph and system.
var table5 = map[string]map[string]timeAndCost{
	"reddit-small": {"Dorylus": {165.77, 0.045}, "Dorylus (GPU only)": {28.06, 0.052}, "DGL (sampling)": {566.33, 0.480},
		"DGL (non-sampling)": {33.64, 0.028}},
	"amazon": {"Dorylus": {415.23, 0.654}, "Dorylus (GPU only)": {308.27, 2.096}, "DGL (sampling)": {842.49, 5.728},
		"AliGraph": {1560.66, 1.498}},
}

// worth5 has the value of Dorylus relative to a system (§7.5).
var worth5 = map[string]map[string]float64{"amazon": {"DGL (sampling)": 17.7, "AliGraph": 8.6}}

// printed3 has means over the graphs (§7.3): the times of pipe and of s = 1 relative to s = 0, and
// the values of s = 0 relative to pipe and to s = 1.
var printed3 = [4]float64{1.234, 1.233, 1.288, 1.494}
