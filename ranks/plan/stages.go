package plan

import (
	"fmt"
	"strings"

	"siafu/internal/size"
	"siafu/ranks/forecast"
)

// Stage describes a stage of the pipelines of a run.
type Stage struct {
	First        int             `json:"first_layer"`  // from 0
	End          int             `json:"end_layer"`    // the layer after its last one
	Microbatches int             `json:"microbatches"` // whose activations it stores at one time
	Memory       forecast.Memory `json:"memory"`       // of its rank with the largest partition
}

// stages sets the stages of the best candidate.
func (p *Plan) stages() {
	best := p.Candidates[p.Best]
	f := best.Codecs[0].forecast
	for stage, of := range f.Stages() {
		s := Stage{First: of.First, End: of.End, Microbatches: f.Config.PipelineSettings().InFlight(stage)}
		for d, part := range best.report.Ranks {
			if m := f.GraphRank(d*f.Config.Pipelining().Stages+stage, part); m.Peak() > s.Memory.Peak() {
				s.Memory = m
			}
		}
		p.Stages = append(p.Stages, s)
	}
}

// printStages prints a line for each stage.
func (p *Plan) printStages(b *strings.Builder) {
	for k, s := range p.Stages {
		fmt.Fprintf(b, "stage %d: layers %d to %d, %d microbatches stored, %s MB\n", k, s.First, s.End-1, s.Microbatches,
			megabytes(size.Sum(s.Memory.Peak(), forecast.Program)))
	}
}
