package forecast

import (
	"slices"

	"siafu/internal/size"
	"siafu/ranks/config"
)

// ServerRank returns the memory of a parameter server for the given number of graph ranks.
func (f *Forecast) ServerRank(ranks int) Memory {
	m, n := new(Memory), floats(int64(f.Net.NumWeights()))
	m.add("weights", Array, n)
	f.start(m, n)
	f.serve(m, ranks)
	return *m
}

// summed returns the bytes of the reduced values: gradients, or weights and optimiser state with
// local steps.
func (f *Forecast) summed() int64 {
	n := int64(f.Net.NumWeights())
	if f.Config.LocalEpochs > 0 {
		n = size.Product(n, int64(1+f.Slots))
	}
	return floats(n)
}

// serve appends a server's memory in addition to the weights.
func (f *Forecast) serve(m *Memory, ranks int) {
	n := f.summed()
	switch {
	case f.Config.LocalEpochs > 0: // the last sum
		m.add(averaged, Heap, n)
	default:
		m.add(optimiser, Array, slices.Repeat([]int64{n}, f.Slots)...)
	}
	// Gradients that are not summed yet, sent messages, and versions.
	copies := size.Sum(int64(2*(ranks+f.Servers)), int64(f.Config.MostStaleness()), 2)
	if f.Config.Mode == config.Free { // two per rank, their sum, a mean of weights, and a message for each rank
		copies = int64(3*f.Graph + 4)
	}
	m.add("gradients and messages", Heap, size.Product(copies, n))
}
