package spot

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"siafu/internal/fault"
)

// Inputs are the measured or published numbers of a training and its machines. Flags describes each
// one. The requested cluster has Depth × Replicas machines. Times are in seconds.
type Inputs struct {
	Depth           int     `json:"depth"`
	Replicas        int     `json:"replicas"`
	MinDepth        int     `json:"min_depth"`
	Microbatches    int     `json:"microbatches"`
	Batch           float64 `json:"batch"`
	Iteration       float64 `json:"iteration"`
	Redundancy      float64 `json:"redundancy"`
	Merged          float64 `json:"merged"`
	Risk            float64 `json:"risk"`
	Pause           float64 `json:"pause"`
	Reconfigure     float64 `json:"reconfigure"`
	Restart         float64 `json:"restart"`
	Startup         float64 `json:"startup"`
	CheckpointEvery float64 `json:"checkpoint_every"`
	CheckpointTime  float64 `json:"checkpoint_time"`
	CheckpointStall float64 `json:"checkpoint_stall"`
	Notice          float64 `json:"notice"`
	Move            float64 `json:"move"`
	Copies          float64 `json:"copies"`
	Parts           int     `json:"parts"`
	Price           float64 `json:"price"`
	PriceDemand     float64 `json:"price_demand"`
	Samples         float64 `json:"samples"`
}

// Machines returns the number of requested machines.
func (in *Inputs) Machines() int { return in.Depth * in.Replicas }

// Validate returns a fault of kind Usage for values outside their ranges.
func (in *Inputs) Validate() error {
	bad := func(flag string, value any, remedy string) error {
		return fault.New(fault.Usage, op, "", "--%s=%v", flag, value).Then("%s", remedy)
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"depth", in.Depth}, {"replicas", in.Replicas}, {"min-depth", in.MinDepth}, {"microbatches", in.Microbatches}, {"parts", in.Parts}} {
		if n.value < 1 || n.value > maxMachines {
			return bad(n.flag, n.value, "set 1 to 100000")
		}
	}
	if in.MinDepth > in.Depth {
		return bad("min-depth", in.MinDepth, "set at most --depth")
	}
	if in.Depth > maxMachines/in.Replicas {
		return bad("replicas", in.Replicas, "set at most 100000 machines together")
	}
	for _, x := range []struct {
		flag     string
		value    float64
		positive bool
	}{
		{"batch", in.Batch, true}, {"iteration", in.Iteration, true}, {"price", in.Price, true}, {"price-demand", in.PriceDemand, true},
		{"redundancy", in.Redundancy, false}, {"risk", in.Risk, false}, {"pause", in.Pause, false}, {"reconfigure", in.Reconfigure, false},
		{"restart", in.Restart, false}, {"startup", in.Startup, false}, {"checkpoint-every", in.CheckpointEvery, true},
		{"checkpoint-time", in.CheckpointTime, false},
		{"checkpoint-stall", in.CheckpointStall, false}, {"notice", in.Notice, false}, {"move", in.Move, false},
		{"copies", in.Copies, false}, {"samples", in.Samples, false},
	} {
		if !(x.value >= 0 && x.value <= 1e12) || x.positive && x.value < 1e-6 {
			return bad(x.flag, x.value, map[bool]string{true: "set 0.000001 to 1e12", false: "set 0 to 1e12"}[x.positive])
		}
	}
	if !(in.Merged >= 1 && in.Merged <= 1e3) {
		return bad("merged", in.Merged, "set 1 to 1000")
	}
	return nil
}

// Rate returns the samples per second of d pipelines of p stages without redundant work. Each
// pipeline has its own minibatch (Bamboo, §3.6: "the global minibatch size is n × g"), so the rate
// is proportional to d. A stage's time is inversely proportional to the depth, and a pipeline of m
// microbatches is busy for m/(m+p-1) of its time, as in a 1F1B schedule.
func (in *Inputs) Rate(p int, d float64) float64 {
	m := float64(in.Microbatches)
	busy := func(p int) float64 { return m / (m + float64(p-1)) }
	return in.Batch / in.Iteration * float64(p) * d / float64(in.Machines()) * busy(p) / busy(in.Depth)
}

// Network is a network of Bamboo's table 3.2.
type Network struct {
	Name         string
	Depth        int // P of table 3.1, 1.5 times the depth on demand
	Replicas     int
	Batch        float64
	DemandS      float64 // samples per second on demand, one GPU per machine
	Bamboo       [3]float64
	BambooCost   [3]float64
	Redundancy   float64 // table 3.5; for networks not in it that of BERT (languages) or ResNet (images)
	Reconfigure  float64
	DemandDollar float64 // per hour
}

// Networks returns the networks of tables 3.1, 3.2 and 3.5. Batch and Reconfigure are those of the
// authors' published simulator, because the text does not state them.
func Networks() []Network {
	big, small := [3]float64{42.23, 40.39, 36.72}, [3]float64{20.19, 19.28, 18.36}
	return []Network{
		{"resnet", 12, 4, 384, 32, [3]float64{21.67, 19.41, 12.13}, big, 0.0951, 10, 97.92},
		{"vgg", 6, 4, 384, 167, [3]float64{153.31, 124.88, 98.21}, small, 0.0951, 5, 48.96},
		{"alexnet", 6, 4, 384, 336, [3]float64{340.32, 321.65, 280.42}, small, 0.0951, 5, 48.96},
		{"gnmt", 6, 4, 288, 24, [3]float64{18.92, 16.31, 8.8}, small, 0.1977, 10, 48.96},
		{"bert", 12, 4, 264, 108, [3]float64{98.87, 83.70, 60.59}, big, 0.1977, 20, 97.92},
		{"gpt", 12, 4, 264, 30, [3]float64{29.92, 22.68, 13.78}, big, 0.1977, 20, 97.92},
	}
}

// fullRate is the throughput of Bamboo's requested cluster without losses, divided by that of the
// machines on demand. The paper does not state it. It is the one number that is fitted to table
// 3.3; the other tables and networks use it unchanged.
const fullRate = 0.97

// Named returns the inputs of a network, or a fault of kind Usage. Iteration is such that the
// requested cluster with redundant computation trains fullRate × DemandS samples per second.
func Named(name string) (Inputs, error) {
	list := Networks()
	k := slices.IndexFunc(list, func(n Network) bool { return n.Name == name })
	if k < 0 {
		var names []string
		for _, n := range list {
			names = append(names, n.Name)
		}
		return Inputs{}, fault.New(fault.Usage, op, "", "--network=%q", name).Then("choose from %s", strings.Join(names, ", "))
	}
	n := list[k]
	in := Inputs{
		Depth: n.Depth, Replicas: n.Replicas, MinDepth: n.Depth * 2 / 3, Microbatches: 22, Batch: n.Batch,
		Redundancy: n.Redundancy, Merged: 1.5, Risk: 0.05, Reconfigure: n.Reconfigure, Restart: 30, Startup: 45,
		CheckpointEvery: 600, CheckpointTime: 30, Notice: 120, Move: n.Reconfigure, Parts: 4, Price: 0.91, PriceDemand: 3.06,
	}
	in.Iteration = n.Batch / (fullRate * n.DemandS * (1 + n.Redundancy))
	in.Pause = in.Iteration
	return in, nil
}

// ReadInputs replaces the inputs that a JSON file names. It has the fields of Inputs. Invalid
// contents are a fault of kind Data.
func (in *Inputs) ReadInputs(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.System(op, path, err)
	}
	next, d := *in, json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&next); err != nil {
		return fault.New(fault.Data, op, path, "%v", err).
			Then("write one JSON object with fields such as {\"iteration\": 2.5, \"depth\": 1}")
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.New(fault.Data, op, path, "text after the JSON object").Then("write one JSON object")
	}
	var bad *fault.Error
	if errors.As(next.Validate(), &bad) {
		return fault.New(fault.Data, op, path, "%s", strings.ReplaceAll(strings.TrimPrefix(bad.Detail, "--"), "-", "_")).
			Then("%s", bad.Remedy)
	}
	*in = next
	return nil
}

// infinity is the time of an event that does not happen.
var infinity = math.Inf(1)
