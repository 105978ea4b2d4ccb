package spot

import (
	"siafu/bench/trials"
	"siafu/slurm/spot"
)

// row37 is a network of table 3.7: throughput on demand, with checkpoints and with Bamboo at the rates of
// segments.
type row37 struct {
	name               string
	demand             float64
	checkpoint, bamboo [3]float64
	checkpointDollars  float64
	bambooDollars      [3]float64
}

var table37 = []row37{
	{"resnet", 24.51, [3]float64{12.26, 8.42, 5.03}, [3]float64{21.22, 18.31, 12.31}, 7.34, [3]float64{10.56, 10.09, 9.18}},
	{"vgg", 144.28, [3]float64{83.21, 67.21, 45.31}, [3]float64{125.59, 96.51, 73.73}, 7.34, [3]float64{10.56, 10.09, 9.18}},
}

// Numbers of §3.8 and §3.9.3 for pure data parallelism: 8 workers on demand, 1.5 times as many with Bamboo,
// and an overhead of redundant passes "<10 %", of which the limit is taken.
const (
	workers          = 8
	redundantWorkers = 12
	dataOverhead     = 0.1
	spotPrice        = 0.918
)

// data returns the inputs of pure data parallelism.
func (n row37) data(machines int) spot.Inputs {
	in := network(n.name)
	in.Depth, in.MinDepth, in.Microbatches, in.Replicas, in.Parts, in.Price = 1, 1, 1, machines, 1, spotPrice
	in.Iteration = in.Batch / n.demand
	in.Pause, in.Copies = in.Iteration, 0
	return in
}

func (o Options) table37(t *trials.Sheet) {
	for _, n := range table37 {
		dollars := workers * 3.06
		t.Add(n.name, "on demand", "–", n.demand, dollars, n.demand/dollars)
		for k, rate := range segments {
			c := o.always(n.data(workers), rate)
			in := n.data(redundantWorkers)
			in.Copies = dataOverhead
			b := o.replay(in, "siafu-copies", rate)
			for _, s := range []struct {
				name           string
				run            spot.Run
				paper, dollars float64
			}{{"checkpoint", c, n.checkpoint[k], n.checkpointDollars}, {"bamboo", b, n.bamboo[k], n.bambooDollars[k]}} {
				t.Add(n.name, s.name, 100*rate, beside(s.run.Throughput, s.paper), beside(s.run.DollarsPerHour, s.dollars),
					beside(s.run.Value, s.paper/s.dollars))
			}
		}
	}
}

// always returns the mean of checkpointing runs in which a standby machine replaces each lost one at once: "our
// implementation of Checkpoint assumes that there is always a standby node" (§3.9.3).
func (o Options) always(in spot.Inputs, rate float64) spot.Run {
	in.Startup = 0
	g := losses(in.Machines(), rate)
	g.Regrow = 1.0 / 60
	return o.mean(in, "checkpoint", g)
}

// failures writes the fractions of time with a loss of one machine every 10 minutes.
func (o Options) failures(t *trials.Sheet) {
	in := network("bert")
	for _, e := range spot.Systems() {
		r := o.mean(in, e.Name, spot.GenerateOptions{Machines: in.Machines(), Rate: 6 / float64(in.Machines()), Bulk: 1})
		t.Add(e.Name, 100*r.Fractions["useful"], "–")
	}
}
