package checkpoint

import (
	"fmt"
	"testing"

	"siafu/internal/safetensors"
	"siafu/ranks/runfolder"
)

// Weights of a network with 128 inputs, 128 hidden columns and 10 classes, and
// of one whose state is 1 GiB.
var benchWeights = []int{128*128 + 128 + 128*10 + 10, 1 << 26}

// BenchmarkSave saves what a network has with Adam: weights, two slots and the
// best weights, 16 bytes a weight. sync-ms is the part after the last byte was
// handed over.
func BenchmarkSave(b *testing.B) {
	for _, weights := range benchWeights {
		b.Run(fmt.Sprintf("weights=%d", weights), func(b *testing.B) {
			s, dir := benchState(weights), b.TempDir()
			var w Written
			for b.Loop() {
				s.Epoch++
				w = mustSave(b, dir, s)
				if _, err := Prune(dir, 1, s.Epoch); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(w.Bytes)
			b.ReportMetric(1e3*w.Took.Seconds(), "last-ms")
			b.ReportMetric(1e3*w.Syncing.Seconds(), "sync-ms")
		})
	}
}

func BenchmarkLatest(b *testing.B) {
	for _, weights := range benchWeights {
		b.Run(fmt.Sprintf("weights=%d", weights), func(b *testing.B) {
			dir := b.TempDir()
			b.SetBytes(mustSave(b, dir, benchState(weights)).Bytes)
			for b.Loop() {
				if s, _, err := Latest(dir); s == nil || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchState(weights int) State {
	tensor := func(k int) []safetensors.Tensor {
		data := make([]float32, weights)
		for i := range data {
			data[i] = float32(i+k) / 7
		}
		return []safetensors.Tensor{{Name: "layers.0.weight", Shape: []int{weights}, Data: data}}
	}
	return State{
		Weights: tensor(0), Slots: []Slot{{"exp_avg", tensor(1)}, {"exp_avg_sq", tensor(2)}},
		Best: &Best{Line: runfolder.Epoch{Epoch: 1}, Weights: tensor(3)},
	}
}
