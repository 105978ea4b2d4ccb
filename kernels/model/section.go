package model

import (
	"math"
	"slices"
)

// Section is the consecutive layers [First, End) of a network. It is a stage of a pipeline of layers
// (GPipe, NeurIPS'19, section 2.2). Its first layer reads the rows that Crossing returns, and returns
// their gradients.
type Section struct{ First, End int }

// Has reports whether the section has layer l.
func (s Section) Has(l int) bool { return l >= s.First && l < s.End }

// Section returns all layers of the network.
func (n *Network) Section() Section { return Section{0, len(n.Layers)} }

// Deal deals layers to stages of consecutive layers, at least one each. The cost of a stage is the sum of
// the costs of its layers, multiplied by the stage's factor. The largest cost is as small as possible.
// Among equal divisions the earlier stages have fewer layers. There are at most as many factors, one per
// stage, as layers.
func Deal(costs, factors []float64) []Section {
	layers, stages := len(costs), len(factors)
	best := make([][]float64, stages+1) // by stages and first layer: the largest sum of the rest
	for k := range best {
		best[k] = slices.Repeat([]float64{math.Inf(1)}, layers+1)
	}
	best[0][layers] = 0
	ends := make([][]int, stages+1)
	for k := 1; k <= stages; k++ {
		ends[k] = make([]int, layers)
		for first := range layers {
			sum := 0.0
			for end := first + 1; end <= layers; end++ {
				sum += float64(costs[end-1] * factors[stages-k])
				if most := max(sum, best[k-1][end]); most < best[k][first] {
					best[k][first], ends[k][first] = most, end
				}
			}
		}
	}
	list, first := make([]Section, 0, stages), 0
	for k := stages; k > 0; k-- {
		list = append(list, Section{first, ends[k][first]})
		first = ends[k][first]
	}
	return list
}

// Costs returns the arithmetic of each layer per vertex, in gathered multiply-adds, for the forward and the
// backward pass of vertices with the given mean number of neighbours.
func (n *Network) Costs(neighbours float64) (list []float64) {
	for l, r := range n.ranges {
		products := 2.0
		if !n.builders[l].constant {
			products = 3
		}
		cost := products*float64(r.Hi-r.Lo)/gemmRate + float64(n.Spec.Dims[l+1])
		if g := n.Gathering(l); g.Width > 0 {
			gathers := 1.0
			if g.Backward {
				gathers = 2
			}
			cost += float64(gathers * float64(g.Width) * (neighbours + 1))
		}
		list = append(list, cost)
	}
	return list
}

// StoredColumns returns about the number of floats that each layer stores per vertex for its backward pass.
func (n *Network) StoredColumns() (list []float64) {
	for l := range n.Layers {
		list = append(list, float64(n.Spec.Dims[l+1]+n.Gathering(l).Gathered()))
	}
	return list
}

// Columns returns the number of floats per vertex of the section's values from the forward to the
// backward pass of a microbatch.
func (s Section) Columns(n *Network) int { return newSectionPlan(n, s, InStep).columns() }

// Crossing returns the values that layers before layer l compute for layer l and later ones: the input
// of layer l and the outputs of earlier layers that later ones also read (Part.From). grads are the
// values that go back: the gradients of these outputs, as far as the layers from l on have added to
// them. Both are empty for the first layer. Values that share a matrix are listed once.
func (n *Network) Crossing(l int) (rows, grads []Ref) {
	before, after := n.crossing(l)
	for _, r := range before {
		rows = append(rows, Ref{Layer: r.layer, Value: r.value})
	}
	for _, r := range after {
		grads = append(grads, Ref{Layer: r.layer, Value: r.value, Back: true})
	}
	return rows, grads
}

// CrossingColumns returns the columns of the values that Crossing returns.
func (n *Network) CrossingColumns(l int) (columns int) {
	rows, grads := n.crossing(l)
	for _, r := range slices.Concat(rows, grads) {
		columns += n.width(r)
	}
	return columns
}

// crossing returns the roots of Crossing.
func (n *Network) crossing(l int) (rows, grads []ref) {
	if l == 0 || l == len(n.Layers) {
		return nil, nil
	}
	rows, grads = n.roots(l, Input), n.roots(l, InputGrad)
	for k := range l {
		if n.readFrom(k, l) {
			rows = append(rows, n.roots(k, Output)...)
			grads = append(grads, n.roots(k, skipGrad)...)
		}
	}
	return unique(rows), unique(grads)
}

// readFrom reports whether layer l or a later one skips to the output of layer k.
func (n *Network) readFrom(k, l int) bool {
	return slices.ContainsFunc(n.builders[l:], func(b *Builder) bool { return slices.Contains(b.part.From, k) })
}

// unique returns list without repeated elements.
func unique(list []ref) (once []ref) {
	for _, r := range list {
		if !slices.Contains(once, r) {
			once = append(once, r)
		}
	}
	return once
}

// sectionEvents returns the events of a microbatch in a section.
func (n *Network) sectionEvents(s Section) (all []event) {
	if s == n.Section() {
		return n.epoch
	}
	rows, grads := n.crossing(s.First)
	outRows, outGrads := n.crossing(s.End)
	end := event{Do: Do{Layer: s.End - 1, Stage: sendRows}, reads: outRows}
	back := event{Do: Do{Layer: s.End - 1, Stage: receiveGrads}, writes: outGrads}
	all = append(all, event{Do: Do{Layer: s.First, Stage: receiveRows}, writes: rows})
	turned := false // the backward pass has begun
	for _, e := range n.epoch {
		if e.Stage == Loss || e.Stage.Backward() {
			if !turned && s.End < len(n.Layers) {
				all = append(all, end, back)
			}
			turned = true
		}
		if s.Has(e.Layer) {
			all = append(all, e)
		}
	}
	return append(all, event{Do: Do{Layer: s.First, Stage: sendGrads}, reads: grads})
}
