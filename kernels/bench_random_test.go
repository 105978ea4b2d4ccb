package kernels_test

import (
	"fmt"
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// eachVariant runs a benchmark with every set of instructions, one worker.
func eachVariant(b *testing.B, work float64, unit string, kernel func(team *kernels.Team)) {
	for _, set := range []string{"avx512", "avx2", "go"} {
		b.Run(set, func(b *testing.B) {
			team := kernels.NewTeam(1)
			defer team.Close()
			if err := team.Use(set); err != nil {
				b.Skip(err)
			}
			for b.Loop() {
				kernel(team)
			}
			b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds(), unit)
		})
	}
}

func BenchmarkDropout(b *testing.B) {
	for _, width := range []int{7, 16, 41, 64, benchWidth} {
		rows := 1 << 17 / width
		x := kerneltest.Values(rows*width, 1)
		dst := make([]float32, len(x))
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			eachVariant(b, float64(len(x))*1e-9, "Gelements/s", func(team *kernels.Team) {
				kernels.DropoutRows(team, dst, rows, width, x, &kernels.Dropout{Seed: 1, P: 0.5})
			})
		})
	}
}
