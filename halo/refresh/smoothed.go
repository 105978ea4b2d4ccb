package refresh

import "siafu/halo"

// smoothed is Previous with PipeGCN's smoothing (ICLR'22, §3.4): ghosts (F), gradients of
// ghosts (G), or both (GF) are replaced by a moving average, which starts at zero: decay times
// the average plus 1-decay times the received rows.
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
