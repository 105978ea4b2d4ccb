package dorylus

import (
	"math"
	"time"

	"siafu/bench/trials"
	"siafu/lambda/bill"
	"siafu/lambda/local"
	"siafu/ranks/forecast"
	"siafu/ranks/runfolder"
)

// Model's assumptions about functions: Dorylus, §7.2 and §6.
const (
	functionMemory = 192 // MB
	functionsAtOne = 100 // maximum concurrent functions per server
	tariffOfPaper  = "x86_64-100ms"
)

// Model estimates the work of an epoch on a graph of the paper's size, and its time and cost
// on a cluster.
//
// Graph work is the processor-seconds of the tasks GA and ∇GA, tensor work those of AV, ∇AV,
// loss and WU, measured without overlap on CPUs. They are scaled by the ratios of edges and of
// vertices. Bytes to and from functions, and invocations, are measured and scaled likewise. A
// server's ghost rows are those of one of P ranks, times (P/N)^GhostPower.
//
// On N servers with v processors each, every one as fast as this machine's: the work of a
// server's processors, network card and functions overlaps perfectly, so that an epoch takes
// as long as the slowest of the three; without pipelining (no-pipe) they run in sequence.
// On GPUs, a server's kernels take the time of GPU's roofline, one after the other, and ghost
// rows cross the bus twice. Graphs that exceed a GPU's memory have no time.
//
// Barriers, stragglers, cold starts and memory shortage of servers are not modelled.
type Model struct {
	Graph, Tensor float64 // processor-seconds
	Rows          float64 // bytes of ghost rows that one of Ranks sends
	Ranks         int
	GhostPower    float64
	Values        float64 // bytes to functions and back; 0: not measured
	Invocations   float64
	GPU           *device // nil: GPUs do not take the flags
}

// covers reports whether the inputs for a backend were measured.
func (m Model) covers(on backend) bool {
	return m.Ranks > 0 && (on.name != functions.name || m.Invocations > 0) && (on.name != gpuOnly.name || m.GPU != nil)
}

// covers reports whether a model has a time for a backend on a cluster. It notes the reason if the
// graph does not fit on GPUs.
func (b *bench) covers(m Model, c cluster, on backend) bool {
	if !m.covers(on) {
		return false
	}
	if on.name == gpuOnly.name {
		if why := m.GPU.shortage(c); why != "" {
			b.short = append(b.short, why)
			return false
		}
	}
	return true
}

// modelOf measures the inputs of a Model; those that were not measured are 0.
func (b *bench) modelOf(s *trials.Sheet, g *graphOf, model string) (m Model) {
	edgeRatio, vertexRatio := g.ratios()
	alone := b.time(s, g, model, cpuOnly, nopipe)
	if alone.run == nil {
		return m
	}
	m = Model{Ranks: b.Ranks, GhostPower: b.GhostPower}
	all := float64(b.Ranks * b.threads())
	task := func(names ...string) float64 {
		return all * alone.perEpoch(func(e runfolder.Epoch) (sum float64) {
			for _, n := range names {
				sum += e.TaskSeconds[n]
			}
			return sum
		})
	}
	m.Graph, m.Tensor = edgeRatio*task("GA", "∇GA"), vertexRatio*task("AV", "∇AV", "loss", "WU")
	m.Rows = vertexRatio * alone.perEpoch(trials.Sent) / float64(b.Ranks)
	ghosts := 0.0
	for _, r := range alone.run.Summary.PerRank {
		ghosts += vertexRatio * float64(r.Ghosts) / float64(b.Ranks)
	}
	var err error
	if m.GPU, err = b.deviceOf(g, model, ghosts); err != nil { // flags of train that GPUs do not take
		b.short = append(b.short, reason(err))
	}
	with := b.time(s, g, model, functions, pipe)
	if with.run == nil {
		return m
	}
	sum := with.run.Summary
	n := float64(max(sum.Epochs, 1))
	m.Values = vertexRatio * float64(sum.LambdaBytesSent+sum.LambdaBytesReceived) / n
	m.Invocations = vertexRatio * float64(sum.LambdaInvocations) / n
	return m
}

// shrunk scales the ghosts of one of a number of ranks, or their bytes, to one of a number of
// servers. A single server has none.
func shrunk(ghosts float64, ranks, servers int, power float64) float64 {
	if servers == 1 {
		return 0
	}
	return ghosts * math.Pow(float64(ranks)/float64(servers), power)
}

// Epoch returns the seconds of an epoch on a cluster's processors, network cards and
// functions, each separately.
// On GPUs, processors are the GPUs, and cards include the buses.
func (m Model) Epoch(c cluster, on backend) (processors, cards, remote float64) {
	host, n := machines[c.instance], float64(c.count)
	rate := host.network * 1e9 / 8 * forecast.PayloadShare
	rows := shrunk(m.Rows, m.Ranks, c.count, m.GhostPower)
	cards = rows / rate
	switch on.name {
	case functions.name:
		remote = max(m.functionSeconds()/(n*functionsAtOne), m.Values/(n*rate))
		return m.Graph / (n * host.processors), cards, remote
	case gpuOnly.name:
		return m.GPU.seconds("", gpus[c.instance], c.count), cards + 2*rows/bus, 0
	}
	return (m.Graph + m.Tensor) / (n * host.processors), cards, 0
}

// functionSeconds returns the seconds of all invocations of an epoch.
func (m Model) functionSeconds() float64 {
	return m.Tensor/local.VCPU(functionMemory) + 8*m.Values/local.Bandwidth(functionsAtOne)
}

// Seconds returns an epoch's time.
func (m Model) Seconds(c cluster, on backend, overlap bool) float64 {
	processors, cards, remote := m.Epoch(c, on)
	if !overlap {
		return processors + cards + remote
	}
	return max(processors, cards, remote)
}

// Cost returns the dollars of servers for some seconds, and of functions for some epochs.
func (m Model) Cost(c cluster, seconds, epochs float64, on backend) (servers, invoked float64) {
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return seconds, seconds
	}
	servers = c.dollars(seconds)
	if on.name != functions.name || m.Invocations == 0 {
		return servers, 0
	}
	one := bill.Functions{Tariff: constant(bill.Architecture(tariffOfPaper)), Memory: functionMemory}
	one.Add(bill.FirstUsed, 0, duration(m.functionSeconds()/m.Invocations))
	return servers, one.USD() * m.Invocations * epochs
}

// constant returns x, and panics if err is not nil. It wraps calls whose arguments are constants of
// the paper, so that an error is a defect of the program.
func constant[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// dollars returns the cost of a cluster for some seconds.
func (c cluster) dollars(seconds float64) float64 {
	return constant(bill.ParseInstance(c.instance)).USD(c.count, seconds)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
