package generate

import (
	"cmp"
	"fmt"
	"math"
	"runtime"

	"siafu/graph"
	"siafu/internal/workers"
)

// fillTask fills in what goes with the task.
func (o *Options) fillTask() {
	o.Task = cmp.Or(o.Task, graph.MultiClass)
	if o.Task == graph.MultiClass {
		return
	}
	o.flips, o.Strays = o.Strays, 0
	if o.Labels == 0 {
		o.Labels = map[string]int{graph.MultiLabel: 8}[o.Task] + map[string]int{graph.Regression: 1}[o.Task]
	}
}

// targets are those of the vertices [Vertices x Labels], and the best that a network can
// do which knows the class of each vertex, to end the dataset's source.
//
// Of MultiLabel each class has labels, of which a vertex bears each unless it is flipped,
// with probability s = Strays: whoever says what the class has is best. Of Regression a
// vertex has the number of its class, by √(1-s), and noise by √s: their squares have the
// mean 1 and the best R² is 1-s.
func targets(e *edges, o Options) (values []float32, best string) {
	random, width := newStream(o.Seed, purposeTargets), o.Labels
	of := make([]float64, o.Classes*width)
	for i := range of {
		class, column := i/width, i%width
		switch {
		case o.Task == graph.Regression:
			of[i] = float64(normal(random.at(uint64(i))))
		case class%width == column%o.Classes || unit(random.at(uint64(i))) < 0.25:
			of[i] = 1
		}
	}
	if o.Task == graph.Regression {
		standardise(of, width)
	}
	values = make([]float32, int(o.Vertices)*width)
	first := uint64(len(of))
	workers.Blocks(runtime.GOMAXPROCS(0), int(o.Vertices), block, func(_, from, to int) {
		for v := from; v < to; v++ {
			class := int(e.block(uint64(v)) % uint64(o.Classes))
			for c := range width {
				i := first + uint64(v*width+c)
				y := of[class*width+c]
				switch {
				case o.Task == graph.Regression:
					y = math.Sqrt(1-o.flips)*y + math.Sqrt(o.flips)*float64(normal(random.at(i)))
				case unit(random.at(i)) < o.flips:
					y = 1 - y
				}
				values[v*width+c] = float32(y)
			}
		}
	})
	return values, fmt.Sprintf(", %s of %d columns, where a network that knows the classes reaches %s", o.Task, width, o.best(of))
}

// best is what is known to be the best score.
func (o *Options) best(of []float64) string {
	if o.Task == graph.Regression {
		return fmt.Sprintf("r2=%.4f", 1-o.flips)
	}
	ones := 0.0
	for _, y := range of {
		ones += y
	}
	others, s := float64(len(of))-ones, o.flips
	return fmt.Sprintf("micro_f1=%.4f", 2*ones*(1-s)/(ones+ones*(1-s)+others*s))
}

// standardise gives each column mean 0 and deviation 1, where it varies.
func standardise(x []float64, width int) {
	rows := float64(len(x) / width)
	for c := range width {
		var sum, squares float64
		for i := c; i < len(x); i += width {
			sum += x[i]
		}
		for i := c; i < len(x); i += width {
			x[i] -= sum / rows
			squares += x[i] * x[i]
		}
		for i := c; i < len(x) && squares > 0; i += width {
			x[i] *= math.Sqrt(rows / squares)
		}
	}
}
