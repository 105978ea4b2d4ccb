package refresh

import "siafu/halo"

// aged refreshes ghosts in a pass of their own before epochs 1, N+1, 2N+1 and so on: a
// forward pass without an update behind it (REST, arXiv 2410.05416). The passes that
// train use these rows, which in each epoch after the first weigh DECAY times as much
// as in the one before (messages weighed by their age, as VISAGNN has them, arXiv
// 2511.12434, where the weights are learnt). Attention's scores do not fade. Gradients
// of ghosts travel in the epochs behind such a pass alone, since its rows are the only
// ones that are functions of weights that are still there: with N=1 it is always.
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
