package spot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/ranks/report/chart"
	"siafu/ranks/schedule/pipeline"
)

// Times are measured times of a network, in seconds per microbatch: a column beside the modelled
// networks.
type Times struct {
	Name         string    `json:"name"`
	Stages       int       `json:"stages"` // layer l of n is in stage l*Stages/n
	Microbatches int       `json:"microbatches"`
	Forward      []float64 `json:"forward"`  // by layer
	Backward     []float64 `json:"backward"` // by layer
	Transfer     float64   `json:"transfer"` // of the activations between two stages
	Detection    float64   `json:"detection"`
	Preparation  float64   `json:"preparation"` // relative time of lazy redundancy
	Overlap      float64   `json:"overlap"`
}

// ReadTimes reads a JSON file. Invalid contents are a fault of kind Data.
func ReadTimes(path string) (t Times, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return t, fault.System(op, path, err)
	}
	bad := func(format string, args ...any) (Times, error) {
		return t, fault.New(fault.Data, op, path, format, args...).
			Then("write name, stages, microbatches, and the seconds of forward and backward by layer")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return bad("%v", err)
	}
	switch {
	case t.Name == "":
		return bad("no name")
	case t.Stages < 2 || t.Stages > len(t.Forward) || len(t.Forward) > 1000:
		return bad("stages=%d for %d layers", t.Stages, len(t.Forward))
	case t.Microbatches < 1 || t.Microbatches > 1000:
		return bad("microbatches=%d", t.Microbatches)
	case len(t.Backward) != len(t.Forward):
		return bad("forward has %d layers, backward %d", len(t.Forward), len(t.Backward))
	}
	for _, x := range append(append([]float64{t.Transfer, t.Detection, t.Preparation, t.Overlap, 1 - t.Overlap},
		t.Forward...), t.Backward...) {
		if !(x >= 0 && x <= 1e6) {
			return bad("a time of %g", x)
		}
	}
	return t, nil
}

// network returns the network of measured times.
func (t Times) network() piped {
	p := piped{name: t.Name, origin: "measured layers", Settings: pipeline.Settings{Stages: t.Stages, Microbatches: t.Microbatches}}
	p.costs = pipeline.Costs{Forward: make([]float64, t.Stages), Backward: make([]float64, t.Stages), Detection: t.Detection,
		Preparation: t.Preparation, Overlap: t.Overlap}
	for l := range t.Forward {
		stage := l * t.Stages / len(t.Forward)
		p.costs.Forward[stage] += t.Forward[l]
		p.costs.Backward[stage] += t.Backward[l]
	}
	for range t.Stages - 1 {
		p.costs.Transfer = append(p.costs.Transfer, t.Transfer)
	}
	return p
}

// piped is a network as a pipeline.
type piped struct {
	name, origin string
	pipeline.Settings
	costs pipeline.Costs
	paper [3]float64 // overheads of table 3.5, in percent; 0: not in the paper
}

// Inputs of the modelled networks. Stage s takes growth^s times as long as stage 0, and a backward pass
// twice as long as a forward pass. BERT's growth is such that in figure 3.14 the bubble of exactly the
// first 4 of 8 stages is long enough for the next forward pass, "and ~60 %" on the last 4. Overlap is fitted to
// BERT's overhead of eager forward passes, and ResNet's growth to that of ResNet. The overheads of eager
// backward passes and all pauses follow.
const (
	modelStages       = 8 // on demand
	modelMicrobatches = 22
	bertGrowth        = 1.0324 // the last stage takes 1.25 times as long as the first
	resnetGrowth      = 1.318
	overlap           = 0.411
)

// settings are the rows of table 3.5.
var settings = []struct {
	redundancy pipeline.Redundancy
	name       string
}{{pipeline.LazyForwardBackward, "lazy FRC, lazy BRC"}, {pipeline.EagerForward, "eager FRC, lazy BRC"},
	{pipeline.EagerForwardBackward, "eager FRC, eager BRC"}}

// growing returns the costs of stages that grow by a factor. The first forward pass takes one second.
func growing(stages int, growth float64) (c pipeline.Costs) {
	for s := range stages {
		f := math.Pow(growth, float64(s))
		c.Forward, c.Backward = append(c.Forward, f), append(c.Backward, 2*f)
	}
	return c
}

// modelled returns the networks of table 3.5, and that of --times.
func (o Options) modelled() (list []piped, err error) {
	for _, n := range []struct {
		name   string
		growth float64
		paper  [3]float64
	}{{"BERT", bertGrowth, [3]float64{7.01, 19.77, 71.51}}, {"ResNet", resnetGrowth, [3]float64{7.65, 9.51, 64.24}}} {
		p := piped{n.name, "modelled", pipeline.Settings{Stages: modelStages, Microbatches: modelMicrobatches},
			growing(modelStages, n.growth), n.paper}
		p.costs.Preparation, p.costs.Overlap = n.paper[0]/100, overlap
		list = append(list, p)
	}
	if o.Times != "" {
		t, err := ReadTimes(o.Times)
		if err != nil {
			return nil, err
		}
		list = append(list, t.network())
	}
	return list, nil
}

func (p piped) with(r pipeline.Redundancy) pipeline.Settings {
	s := p.Settings
	s.Redundancy = r
	return s
}

// overhead returns the relative time of a redundancy in a step, in percent.
func (p piped) overhead(r pipeline.Redundancy) float64 {
	return 100 * (pipeline.Simulate(p.with(r), p.costs).Seconds/pipeline.Simulate(p.with(pipeline.Off), p.costs).Seconds - 1)
}

// pause returns the mean pause of a loss, relative to the time of a step without redundancy: all victims,
// at 50 moments of the step.
func (p piped) pause(r pipeline.Redundancy) float64 {
	const moments = 50
	t, sum := pipeline.Simulate(p.with(r), p.costs), 0.0
	for victim := range p.Stages {
		for k := range moments {
			sum += p.costs.Pause(&t, victim, t.Seconds*(float64(k)+0.5)/moments)
		}
	}
	return sum / moments / float64(p.Stages) / pipeline.Simulate(p.with(pipeline.Off), p.costs).Seconds
}

// write writes a table with a row for each redundancy and a column for each network.
func (o Options) write(t *trials.Sheet, first, format string, cell func(p piped, row int) any) {
	list, err := o.modelled()
	t.Fail(err)
	columns := []string{first}
	for _, p := range list {
		columns = append(columns, p.name+", "+p.origin+format)
	}
	t.Columns(columns...)
	for row, s := range settings {
		cells := []any{s.name}
		for _, p := range list {
			cells = append(cells, cell(p, row))
		}
		t.Add(cells...)
	}
}

func (o Options) table35(t *trials.Sheet) {
	o.write(t, "overhead, %", "|%.2f", func(p piped, row int) any {
		x := p.overhead(settings[row].redundancy)
		if p.paper[row] == 0 {
			return x
		}
		return beside(x, p.paper[row])
	})
}

func (o Options) figure313(t *trials.Sheet) {
	o.write(t, "pause / step", "|%.3f", func(p piped, row int) any {
		x := p.pause(settings[row].redundancy)
		if settings[row].redundancy != pipeline.EagerForward {
			return x
		}
		text := fmt.Sprintf("%s, %.1f %% less than lazy", trials.Number(x, 3), 100*(1-x/p.pause(pipeline.LazyForwardBackward)))
		if p.paper[row] > 0 {
			text += " (~35 %)"
		}
		return text
	})
}

// bubbles returns the forward pass, the bubble and the redundant forward pass of each stage, per microbatch.
func (p piped) bubbles() (forward, bubble, redundant []float64) {
	line := pipeline.Simulate(p.with(pipeline.Off), p.costs)
	for s, u := range line.Ranks {
		forward = append(forward, p.costs.Forward[s])
		bubble = append(bubble, (u.WaitForPredecessor+u.WaitForSuccessor)/float64(p.Microbatches))
		redundant = append(redundant, p.costs.Forward[p.Successor(s)])
	}
	return forward, bubble, redundant
}

func (o Options) figure314(t *trials.Sheet) {
	list, err := o.modelled()
	t.Fail(err)
	for _, p := range list {
		if p.name == "ResNet" {
			continue // the figure has BERT
		}
		forward, bubble, redundant := p.bubbles()
		var f, b []chart.Point
		for s := range forward {
			paper := "–"
			if p.paper[0] > 0 {
				paper = map[bool]string{true: "100", false: "~60"}[s < 4]
			}
			t.Add(p.name, s+1, forward[s], bubble[s], redundant[s], 100*min(bubble[s]/redundant[s], 1), paper)
			f, b = append(f, chart.Point{X: float64(s + 1), Y: forward[s]}), append(b, chart.Point{X: float64(s + 1), Y: bubble[s]})
		}
		t.Draw(&chart.Chart{Name: "bubbles", Title: "forward pass and bubble of " + p.name, X: "stage",
			Y: "time per microbatch", Whole: true,
			Lines: []chart.Line{{Name: "bubble", Points: b}, {Group: len(keys()) - 1, Name: "forward", Points: f}}})
	}
}

// table31 writes the pipelines of the paper and ours. The paper's depth is 1.5 times that on demand.
func (o Options) table31(t *trials.Sheet) {
	for _, n := range []struct {
		name, data string
		d, p       int
	}{
		{"ResNet-152 (paper)", "ImageNet", 4, 12}, {"VGG-19 (paper)", "ImageNet", 4, 6}, {"AlexNet (paper)", "synthetic", 4, 6},
		{"GNMT-16 (paper)", "WMT16 EN-De", 4, 6}, {"BERT-Large (paper)", "Wikicorpus En", 4, 12}, {"GPT-2 (paper)", "Wikicorpus En", 4, 12},
		{"GCN, 8 layers", "amazon-photo", 2, 4}, {"GraphSAGE, 8 layers", "coauthor-cs", 2, 4},
		{"GIN, 6 layers", "fb100-berkeley13-year", 2, 3}, {"GAT, 4 layers", "cora", 2, 2},
	} {
		t.Add(n.name, n.data, n.d, n.p)
	}
}

// Link rates of table 3.6, in bytes per second: AWS limits a connection to 10 Gbit/s within a cluster
// placement group, and to 5 Gbit/s otherwise.
const (
	clusterRate = 10e9 / 8
	spreadRate  = 5e9 / 8
)

// table36 writes the throughput with neighbours in one zone and in different zones. The times of passes
// follow from the paper's throughput in one zone, the bytes of a sample from the network.
func (o Options) table36(t *trials.Sheet) {
	for _, n := range crossZone {
		for _, place := range []struct {
			name  string
			rate  float64
			paper float64
		}{{"one zone", clusterRate, n.cluster}, {"zones", spreadRate, n.spread}} {
			x := n.throughput(place.rate)
			t.Add(n.name, place.name, place.rate*8/1e9, n.bytes()/1e6, beside(x, place.paper),
				beside(x/n.throughput(clusterRate), place.paper/n.cluster), n.gib)
		}
	}
}

// zoned is a network of table 3.6.
type zoned struct {
	name, input          string
	sampleBytes          float64 // of the activations between two stages, in half precision
	spread, cluster, gib float64
}

// BERT has 128 tokens of 1,024 numbers. VGG-19 has 256 maps of 28 × 28 after its third pooling.
var crossZone = []zoned{
	{"BERT", "bert", 128 * 1024 * 2, 148.923, 151.124, 16.39},
	{"VGG19", "vgg", 256 * 28 * 28 * 2, 160.12, 165.77, 11.213},
}

// bytes returns the bytes of a message: a microbatch is 1/22 of a pipeline's minibatch.
func (n zoned) bytes() float64 {
	in := network(n.input)
	return n.sampleBytes * in.Batch / float64(in.Microbatches)
}

// throughput returns the samples per second with links of a rate. Passes take the time with which the
// throughput in one zone is that of the paper.
func (n zoned) throughput(rate float64) float64 {
	in := network(n.input)
	s := pipeline.Settings{Stages: in.Depth, Microbatches: in.Microbatches}
	samples := in.Batch * float64(in.Replicas)
	step := func(forward, rate float64) float64 {
		c := growing(in.Depth, 1)
		for k := range c.Forward {
			c.Forward[k], c.Backward[k] = forward, 2*forward
			c.Transfer = append(c.Transfer, n.bytes()/rate)
		}
		return pipeline.Simulate(s, c).Seconds
	}
	low, high := 0.0, samples/n.cluster
	for range 60 { // bisection to the precision of a float64
		if middle := (low + high) / 2; step(middle, clusterRate) < samples/n.cluster {
			low = middle
		} else {
			high = middle
		}
	}
	return samples / step(low, rate)
}
