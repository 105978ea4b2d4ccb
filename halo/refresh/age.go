package refresh

import "siafu/halo"

// aged refreshes ghosts in a pass of their own before epochs 1, N+1, 2N+1 and so on: a forward
// pass without an update after it (REST, arXiv 2410.05416). Training passes use these rows,
// scaled by DECAY again in each epoch after the first. VISAGNN (arXiv 2511.12434) also weights
// messages by age, with learnt weights. Attention scores are not scaled. Gradients of ghosts
// are sent only in the epoch of such a pass, because only then are its rows functions of the
// current weights. With N=1 it equals always.
func aged(p Policy, _ halo.HistoryOptions) timetable {
	return timetable{
		leaving: func(at halo.Slot) int {
			if !at.Backward && !at.Ahead {
				return -1
			}
			return periodic(p.Epochs, at.Epoch)
		},
		ahead: func(epoch int) bool { return periodic(p.Epochs, epoch) == 0 },
		blend: func(backward, due bool) blend {
			if backward || due {
				return blend{before: 1, after: 1}
			}
			return blend{before: float32(p.Value), after: 1}
		},
	}
}
