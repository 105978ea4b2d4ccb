package dorylus

import (
	"context"
	"fmt"
	"math"

	"siafu/bench/trials"
	"siafu/ranks/report/chart"
)

// outcome is a row of table 4: the cost of training to the target.
type outcome struct {
	work
	on                 backend
	way                order
	epochs             float64
	each               float64 // seconds of an epoch here
	measured, modelled timeAndCost
	why                string // reason why it was not run
}

// outcomes returns the rows of table 4.
func (b *bench) outcomes(ctx context.Context) (list []outcome, err error) {
	for _, w := range b.works() {
		g := b.find(w.graph)
		m, err := b.modelOf(ctx, g, w.model)
		if err != nil {
			return nil, err
		}
		ways := []order{async0, pipe, pipe}
		if w.step {
			ways[0] = pipe
		}
		_, epochs, err := b.epochs(ctx, g, w.model, ways...)
		if err != nil {
			return nil, err
		}
		for k, on := range backends {
			o := outcome{work: w, on: on, way: ways[k], epochs: epochs[k], each: math.NaN(), measured: unknown}
			t, err := b.time(ctx, g, w.model, on, o.way)
			if err != nil {
				return nil, err
			}
			if o.why = t.why; t.run != nil {
				o.each, o.measured = t.each, b.localCost(t, o.epochs)
			}
			if o.modelled, err = m.spent(w.cpu, o.epochs, on); err != nil {
				return nil, err
			}
			list = append(list, o)
		}
	}
	return list, nil
}

var unknown = timeAndCost{math.NaN(), math.NaN()}

// localCost returns time and cost on this machine of epochs like a training's.
func (b *bench) localCost(t timed, epochs float64) timeAndCost {
	if math.IsInf(epochs, 0) || math.IsNaN(epochs) {
		return timeAndCost{epochs, epochs}
	}
	seconds := t.each * epochs
	s := t.run.Summary
	return timeAndCost{seconds, dollars(b.price, seconds) + s.LambdaUSD/float64(max(s.Epochs, 1))*epochs}
}

// spent returns time and cost of epochs on a cluster, unknown for a backend without inputs.
func (m Model) spent(c cluster, epochs float64, on backend) (timeAndCost, error) {
	if !m.covers(on) {
		return unknown, nil
	}
	remote := on.name == functions.name
	if math.IsInf(epochs, 0) || math.IsNaN(epochs) {
		return timeAndCost{epochs, epochs}, nil
	}
	seconds := m.Seconds(c, remote, true) * epochs
	servers, invoked, err := m.Cost(c, seconds, epochs, remote)
	return timeAndCost{seconds, servers + invoked}, err
}

// value returns 1/(T × C); NaN if unknown.
func (s timeAndCost) value() float64 { return 1 / (s.seconds * s.usd) }

func (o outcome) mode() string {
	if o.on.name == functions.name && o.step {
		return o.on.name + " (pipe)"
	}
	return o.on.name
}

// paper returns the paper's values in table 4.
func (o outcome) paper() timeAndCost {
	for k, on := range backends {
		if p := o.printed[k]; on.name == o.on.name && p.seconds > 0 {
			return p
		}
	}
	return unknown
}

// table4 writes time and cost of networks, graphs and modes.
func (b *bench) table4(ctx context.Context, s *trials.Sheet) error {
	list, err := b.outcomes(ctx)
	if err != nil {
		return err
	}
	s.Head("model", "graph", "mode", "epochs, measured", "s/epoch, measured", "time s, measured", "cost $, measured",
		"time s, modelled", "cost $, modelled", "time s, paper", "cost $, paper")
	for _, o := range list {
		p := o.paper()
		s.Row(o.model, o.graph, o.mode()+notRun(o.why), trials.Number(o.epochs, 0), trials.Number(o.each, 4),
			trials.Number(o.measured.seconds, 1), number(o.measured.usd), trials.Number(o.modelled.seconds, 1), number(o.modelled.usd),
			trials.Number(p.seconds, 1), number(p.usd))
	}
	fmt.Fprintf(s, "measured dollars take this machine for %s; Dorylus is async (s=0), the others pipe\n", b.Instance)
	return b.reasons(s)
}

// figure7 writes values relative to CPUs.
func (b *bench) figure7(ctx context.Context, s *trials.Sheet) error {
	list, err := b.outcomes(ctx)
	if err != nil {
		return err
	}
	s.Head("model", "graph", "mode", "value to CPU only, measured", "modelled", "paper", "value to GPU only, paper")
	bars := &chart.Chart{Name: "figure7", Title: "Figure 7: value of Dorylus to CPU only, modelled, and the paper's", X: "value to CPU only"}
	for k, o := range list {
		cpu, gpu := list[k/3*3+1], list[k/3*3+2] // backends has three
		modelled, printed := o.modelled.value()/cpu.modelled.value(), o.paper().value()/cpu.paper().value()
		s.Row(o.model, o.graph, o.mode()+notRun(o.why), number(o.measured.value()/cpu.measured.value()),
			number(modelled), trials.Number(printed, 2), trials.Number(o.paper().value()/gpu.paper().value(), 2))
		if o.on.name == functions.name {
			bars.Bars = append(bars.Bars, bar(o.model+" "+o.graph, functions.name, modelled)...)
			bars.Bars = append(bars.Bars, bar(o.model+" "+o.graph+", paper", cpuOnly.name, printed)...)
		}
	}
	if len(bars.Bars) > 0 {
		s.Draw(bars)
	}
	return b.reasons(s)
}

// bar returns the bar of a number in a group's colour, none if unknown.
func bar(name, group string, x float64) []chart.Bar {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return []chart.Bar{{Group: groupOf(group), Name: name, Value: x, Text: trials.Number(x, 2)}}
}
