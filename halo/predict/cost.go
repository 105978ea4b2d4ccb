package predict

import (
	"math"

	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Cost is the time of predictions of rows of one width.
type Cost struct {
	Fit float64 // seconds of a layer and age, to learn from own rows
	Row float64 // seconds of a predicted row

	// Of recurrent predictors.
	Step  float64 // seconds of a vertex's step, when rows arrive
	Train float64 // seconds of a layer's training
}

// Measure measures a kind of predictions that learn from at most the given number of own rows.
// seconds measures the time of a call. The team is that of the training. Recurrent predictors are
// measured with --predict input=fresh, the default window, and 32 sources of each vertex.
func Measure(kind string, width, own int, team *kernels.Team, seconds func(call func()) float64) (c Cost) {
	if Learns(kind) {
		return measureCells(kind, width, own, team, seconds)
	}
	const ghosts = 8 * chunk
	a := mapped.NewArena()
	defer a.Free()
	s := Wrap(nil, Options{
		Kind: kind, Rows: own, Shapes: []halo.Shape{{Width: width}}, Plan: &halo.Plan{Own: own, Ghosts: ghosts},
		Timing: refresh.Timing{Period: 1, Interval: 1, MaxAge: 1, Decay: 1}, Team: team, Arena: a,
	})
	l, rows := s.layers[0], make([]float32, max(own, ghosts)*width)
	for i := range rows { // half of the numbers are zeros, as after ReLU
		rows[i] = max(float32(math.Sin(float64(i)*float64(i))), 0)
	}
	x := examples{now: kernels.HostMat(own, width, l.now), stale: kernels.HostMat(own, width, l.slot(0)), kept: l.keptAt(0)}
	l.record(rows, s.sampled)
	l.push(1, 0, s.stale)
	c.Fit = seconds(func() {
		l.record(rows[width:], s.sampled[:own-1])
		s.fit(l, x)
	})
	stale := kernels.HostMat(ghosts, width, rows[:ghosts*width])
	c.Row = seconds(func() { s.model.apply(s.predicted(l, ghosts), stale) }) / ghosts
	return c
}
