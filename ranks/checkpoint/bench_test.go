package checkpoint

import (
	"fmt"
	"testing"

	"siafu/ranks/runfolder"
	"siafu/ranks/safetensors"
)

// BenchmarkSave saves what a network of so many weights has with Adam: four
// times its weights.
func BenchmarkSave(b *testing.B) {
	for _, weights := range []int{100_000, 67_108_864} {
		b.Run(fmt.Sprintf("MB=%d", 16*weights/1_000_000), func(b *testing.B) {
			s, dir := sized16(weights), b.TempDir()
			var w Written
			for b.Loop() {
				var err error
				if w, err = Save(dir, s); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(w.Bytes)
			b.ReportMetric(w.Syncing.Seconds(), "sync-s/op")
		})
	}
}

func BenchmarkLatest(b *testing.B) {
	for _, weights := range []int{100_000, 67_108_864} {
		b.Run(fmt.Sprintf("MB=%d", 16*weights/1_000_000), func(b *testing.B) {
			dir := b.TempDir()
			w, err := Save(dir, sized16(weights))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(w.Bytes)
			for b.Loop() {
				if s, _, err := Latest(dir); s == nil || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sized16 is a state of 16 bytes a weight.
func sized16(weights int) State {
	tensor := func(k int) []safetensors.Tensor {
		data := make([]float32, weights)
		for i := range data {
			data[i] = float32(i+k) / 7
		}
		return []safetensors.Tensor{{Name: "layers.0.weight", Shape: []int{weights}, Data: data}}
	}
	return State{
		Epoch: 1, Weights: tensor(0), Slots: []Slot{{"exp_avg", tensor(1)}, {"exp_avg_sq", tensor(2)}},
		Best: &Best{Line: runfolder.Epoch{Epoch: 1}, Weights: tensor(3)},
	}
}
