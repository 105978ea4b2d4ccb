package refresh

import (
	"slices"
	"strconv"
	"strings"

	"siafu/halo"
)

var previousKind = kind{
	entry: entry{Name: "previous", Form: "previous[:SMOOTHING]",
		Help: "ghost rows of the previous epoch, zeros in the first; rows have a whole epoch to arrive. " +
			"SMOOTHING: `none`, or a moving average of rows (`F0.95`), of gradients (`G0.95`) or of both (`GF0.95`, the default): " +
			"0.95 · average + 0.05 · new, initially 0 (PipeGCN, ICLR'22, algorithm 1 and §3.4)"},
	timetable: smoothed, needsStoredRows: true, awaitsLast: true,
	copies: func(p Policy) int64 {
		if p.unsmoothed() {
			return 4
		}
		return 2
	},
	source: func(p Policy, o halo.HistoryOptions) halo.Collective {
		if !p.unsmoothed() {
			return nil
		}
		return NewPrevious(o.Shapes, o.Seed, o.Comm, o.Plan, o.Codec, o.Team, o.Ops, o.Arena)
	},
	defaults: Policy{Value: 0.95, Rows: true, Grads: true},
	params: []parameter{{"SMOOTHING none, or F, G or GF and DECAY, from 0 to below 1, as in previous:GF0.95",
		(*Policy).setSmoothing, (*Policy).smoothing}},
}

// unsmoothed reports whether previous uses rows of the previous epoch as they arrive.
func (p Policy) unsmoothed() bool { return !p.Rows && !p.Grads }

// smoothed returns the timetable of Previous with PipeGCN's smoothing (ICLR'22, §3.4). Ghosts
// (F), gradients of ghosts (G), or both (GF) are replaced by a moving average that starts at
// zero: decay times the average plus 1-decay times the received rows.
func smoothed(p Policy, _ halo.HistoryOptions) timetable {
	keep := float32(p.Value)
	// (average · keep/(1-keep) + rows) · (1-keep): rows are added as they are decoded.
	average := blend{before: keep / (1 - keep), after: 1 - keep, add: true, scores: true}
	return timetable{
		lag: 1, gradsPersist: p.Grads, leaving: func(halo.Slot) int { return 0 },
		blend: func(backward, due bool) blend {
			if due && keep > 0 && (backward && p.Grads || !backward && p.Rows) {
				return average
			}
			return blend{before: 1, after: 1}
		},
	}
}

// noSmoothing is the parameter of previous for unsmoothed ghosts.
const noSmoothing = "none"

// setSmoothing parses what PipeGCN's variants smooth, and the decay.
func (p *Policy) setSmoothing(text string) bool {
	if text == noSmoothing {
		p.Rows, p.Grads, p.Value = false, false, 0
		return true
	}
	which := strings.TrimRight(text, "0123456789.e-")
	p.Rows, p.Grads = strings.HasSuffix(which, "F"), strings.HasPrefix(which, "G")
	x, err := strconv.ParseFloat(text[len(which):], 64)
	p.Value = x
	return slices.Contains([]string{"F", "G", "GF"}, which) && err == nil && x >= 0 && x < 1
}

func (p *Policy) smoothing() string {
	which := map[[2]bool]string{{false, true}: "F", {true, false}: "G", {true, true}: "GF"}[[2]bool{p.Grads, p.Rows}]
	if which == "" {
		return noSmoothing
	}
	return which + strconv.FormatFloat(p.Value, 'g', -1, 64)
}
