package forecast

import (
	"time"

	"siafu/graph/partition"
	"siafu/kernels"
	"siafu/lambda/bill"
	"siafu/lambda/local"
	"siafu/ranks/engine"
)

// Functions is the cost of tensor work in functions, without retries.
type Functions struct {
	Invocations int64   `json:"invocations"`
	To          int64   `json:"bytes_to"`   // size of all tasks
	From        int64   `json:"bytes_from"` // size of all results
	GBSeconds   float64 `json:"gb_seconds"` // computing only, without transfers and cold starts
	USD         float64 `json:"usd"`
}

// And returns the sum of two costs.
func (f Functions) And(o Functions) Functions {
	return Functions{f.Invocations + o.Invocations, f.To + o.To, f.From + o.From, f.GBSeconds + o.GBSeconds, f.USD + o.USD}
}

// times returns n times the cost.
func (f Functions) times(n int64) Functions {
	x := float64(n)
	return Functions{n * f.Invocations, n * f.To, n * f.From, x * f.GBSeconds, x * f.USD}
}

// Functions estimates the cost of one epoch, with its evaluation if there are any, and of a whole
// synchronous run without early stopping. ops is one processor with the kernels of functions.
func (f *Forecast) Functions(parts []partition.RankReport, ops kernels.Ops) (epoch, run Functions, err error) {
	wishes, err := engine.RequestOptions(&f.Config)
	if err != nil {
		return epoch, run, err
	}
	wishes.Form.Codec = nil // the saving depends on values
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
	if !f.Net.Drops() && (f.Graph == 1 || f.Config.Exact()) { // evaluations reuse training's forward pass
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

// price returns the cost of messages. Memory decides the processor share of a function. Work in a
// function is not parallel, so a second processor saves no time.
func (f *Forecast) price(m engine.Messages) Functions {
	all := bill.Functions{Tariff: f.Config.Tariff(), Memory: f.Config.LambdaMemory}
	share := min(local.VCPU(all.Memory), 1)
	for _, d := range m.Work {
		all.Add(bill.FirstUsed, 0, time.Duration(float64(d)/share))
	}
	return Functions{Invocations: m.Tasks, To: m.To, From: m.From, GBSeconds: all.GBSeconds(), USD: all.USD()}
}
