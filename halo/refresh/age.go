package refresh

import "siafu/halo"

var ageKind = kind{
	entry: entry{Name: "age", Form: "age:N[,DECAY]",
		Help: "ghost rows come from an additional forward pass before epochs 1, N+1, …; they " +
			"are multiplied by DECAY (default 1) for each epoch of age; " +
			"gradients are sent in epochs N·i+1 (REST, arXiv 2410.05416; VISAGNN, arXiv 2511.12434)"},
	timetable: aged, needsStoredRows: true, passes: true, share: shareOfRefreshes,
	least: 1, defaults: Policy{Value: 1}, params: []parameter{
		epochs("N a number of epochs, 1 or more", 1, mostEpochs),
		value("DECAY a weight above 0 and up to 1", func(x float64) bool { return x > 0 && x <= 1 }, 1),
	},
}

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
