package forecast

import (
	"math"
	"time"

	"siafu/graph/partition"
	"siafu/kernels"
	"siafu/lambda/bill"
	"siafu/ranks/engine"
)

// Functions is the cost of the invocations of tensor work without repetitions.
type Functions struct {
	Invocations int64   `json:"invocations"`
	To          int64   `json:"bytes_to"`   // of tasks
	From        int64   `json:"bytes_from"` // of results
	GBSeconds   float64 `json:"gb_seconds"` // of their work alone, without the time for bytes and for cold starts
	USD         float64 `json:"usd"`
}

// And is both.
func (f Functions) And(o Functions) Functions {
	return Functions{f.Invocations + o.Invocations, f.To + o.To, f.From + o.From, f.GBSeconds + o.GBSeconds, f.USD + o.USD}
}

// times is n of them.
func (f Functions) times(n int64) Functions {
	x := float64(n)
	return Functions{n * f.Invocations, n * f.To, n * f.From, x * f.GBSeconds, x * f.USD}
}

// aProcessor is the memory in MB with which a function has one processor.
const aProcessor = 1769

// Functions estimates those of an epoch with an evaluation, where there are any, and of
// a whole synchronous run with the configured number of epochs and no reason to stop earlier.
// ops is one processor, with the kernels that functions have.
func (f *Forecast) Functions(parts []partition.RankReport, ops kernels.Ops) (epoch, run Functions, err error) {
	wishes, err := engine.RequestOptions(&f.Config)
	if err != nil {
		return epoch, run, err
	}
	wishes.Form.Codec = nil // what it saves depends on values
	var whole, forward, backward, evaluation Functions
	known := map[int]engine.EpochMessages{}
	for _, p := range parts {
		n, count := int(p.Vertices), f.Config.IntervalsOf(f.Net, int(p.Vertices), p.Edges)
		for k := range count {
			rows := (k+1)*n/count - k*n/count
			passes, ok := known[rows]
			if !ok {
				if passes, err = engine.MeasureMessages(f.Config, f.Net, f.Sparse, wishes, rows, ops); err != nil {
					return epoch, run, err
				}
				known[rows] = passes
			}
			whole, forward = whole.And(f.price(passes.Epoch)), forward.And(f.price(passes.Forward))
			backward, evaluation = backward.And(f.price(passes.Backward)), evaluation.And(f.price(passes.Evaluation))
		}
		some := known[n/count]
		for _, x := range []struct {
			to *Functions
			of engine.Messages
		}{{&whole, some.Epoch}, {&forward, some.Forward}, {&backward, some.Backward}, {&evaluation, some.Evaluation}} {
			x.to.To += 8 * p.FeatureNNZ * x.of.NonZeros // a column and a value
		}
	}
	epochs, evaluations := int64(f.Config.Epochs), int64(f.Config.Evaluations())
	if !f.Net.Drops() && (f.Graph == 1 || f.Config.Exact()) { // training passes evaluate
		evaluated := forward.And(backward)
		epoch, run = evaluated, evaluated.times(evaluations).And(whole.times(epochs-evaluations)).And(forward)
	} else {
		epoch, run = whole.And(evaluation), whole.times(epochs).And(evaluation.times(evaluations+1))
	}
	run = run.And(forward.times(int64(f.Config.Ghosts().Passes(f.Config.Epochs))))
	if evaluations == 0 {
		epoch = whole
	}
	return epoch, run, nil
}

// price is what messages come to: a function has a share of a processor by its memory,
// and work that is not divided has no use for a second one.
func (f *Forecast) price(m engine.Messages) Functions {
	all := bill.Functions{Tariff: f.Config.Tariff(), Memory: f.Config.LambdaMemory}
	share := math.Min(float64(all.Memory)/aProcessor, 1)
	for _, d := range m.Work {
		all.Add(bill.Counted, 0, time.Duration(float64(d)/share))
	}
	gbs, _ := all.GBSeconds(bill.Counted).Float64()
	usd, _ := all.Total().Float64()
	return Functions{Invocations: m.Tasks, To: m.To, From: m.From, GBSeconds: gbs, USD: usd}
}
