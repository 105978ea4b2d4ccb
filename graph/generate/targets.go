package generate

import (
	"cmp"
	"fmt"
	"math"
	"runtime"

	"siafu/graph"
	"siafu/internal/workers"
)

func (o *Options) fillTask() {
	o.Task = cmp.Or(o.Task, graph.MultiClass)
	if o.Task == graph.MultiClass {
		return
	}
	o.flips, o.Strays = o.Strays, 0 // for these tasks --strays flips targets, not classes
	if o.Labels == 0 {
		o.Labels = map[string]int{graph.MultiLabel: 8}[o.Task] + map[string]int{graph.Regression: 1}[o.Task]
	}
}

// targets returns the targets [Vertices x Labels]. It also returns a text for the dataset's
// source: the best possible score of a network that knows the classes.
//
// MultiLabel: each class has a set of labels. A vertex gets them, each flipped with probability s
// = Strays. The best predictor outputs the labels of the class. Regression: a target is √(1-s)
// times the value of the class plus √s times noise. Its variance is 1, and the best R² is 1-s.
func targets(e *edges, o Options) (values []float32, best string) {
	random, width := newStream(o.Seed, purposeTargets), o.Labels
	classTargets := make([]float64, o.Classes*width)
	for i := range classTargets {
		class, column := i/width, i%width
		switch {
		case o.Task == graph.Regression:
			classTargets[i] = float64(normal(random.at(uint64(i))))
		case class%width == column%o.Classes || unit(random.at(uint64(i))) < 0.25:
			classTargets[i] = 1
		}
	}
	if o.Task == graph.Regression {
		standardise(classTargets, width)
	}
	values = make([]float32, int(o.Vertices)*width)
	first := uint64(len(classTargets))
	workers.Blocks(runtime.GOMAXPROCS(0), int(o.Vertices), block, func(_, from, to int) {
		for v := from; v < to; v++ {
			class := int(e.block(uint64(v)) % uint64(o.Classes))
			for c := range width {
				i := first + uint64(v*width+c)
				y := classTargets[class*width+c]
				switch {
				case o.Task == graph.Regression:
					y = float64(math.Sqrt(1-o.flips)*y) + float64(math.Sqrt(o.flips)*float64(normal(random.at(i))))
				case unit(random.at(i)) < o.flips:
					y = 1 - y
				}
				values[v*width+c] = float32(y)
			}
		}
	})
	return values, fmt.Sprintf(", %s with %d columns, best possible score %s", o.Task, width, o.best(classTargets))
}

func (o *Options) best(classTargets []float64) string {
	if o.Task == graph.Regression {
		return fmt.Sprintf("r2=%.4f", 1-o.flips)
	}
	ones := 0.0
	for _, y := range classTargets {
		ones += y
	}
	zeros, s := float64(len(classTargets))-ones, o.flips
	return fmt.Sprintf("micro_f1=%.4f", 2*ones*(1-s)/(ones+float64(ones*(1-s))+float64(zeros*s)))
}

// standardise scales each non-constant column to mean 0 and standard deviation 1.
func standardise(x []float64, width int) {
	rows := float64(len(x) / width)
	for c := range width {
		var sum, squares float64
		for i := c; i < len(x); i += width {
			sum += x[i]
		}
		for i := c; i < len(x); i += width {
			x[i] -= sum / rows
			squares += float64(x[i] * x[i])
		}
		for i := c; i < len(x) && squares > 0; i += width {
			x[i] *= math.Sqrt(rows / squares)
		}
	}
}
