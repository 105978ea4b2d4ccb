package refresh

import "siafu/halo"

var everyKind = kind{
	entry: entry{Name: "every", Form: "every:N[,LAG]",
		Help: "ghost rows are sent in epochs 1, N+1, 2N+1, … and used from LAG (0 to N) epochs later: at most N-1+LAG epochs old; " +
			"gradients are sent in the same epochs and used once, LAG epochs later (DIGEST, §3 and algorithm 1)"},
	timetable: every, needsStoredRows: true, pushes: true, share: shareOfRefreshes,
	copies: func(p Policy) int64 { return 2 * int64(min(p.Lag, 1)) },
	least:  1, params: []parameter{
		epochs("N a number of epochs, 1 or more", 1, mostEpochs),
		{"LAG a number of epochs from 0 to N", func(p *Policy, text string) bool { return count(&p.Lag, text, 0, p.Epochs) },
			func(p *Policy) string { return unless(p.Lag, 0) }},
	},
}

// every returns the timetable of DIGEST's periodic synchronisation ("Distributed graph neural
// network training with periodic stale representation synchronization", §3 and algorithm 1): the
// rows of all layers are sent in epochs 1, N+1, 2N+1 and so on, and used from LAG epochs later
// until newer ones are due. Gradients of ghosts are sent in the same epochs, and used once, LAG
// epochs later; in other epochs ghost rows are constants. With N=1 and LAG=0 it equals always.
//
// DIGEST sends no gradients (--refresh gradients=no). It pushes in those epochs, and pulls the pushed
// rows in epochs N, 2N and so on. This is every:N,N-1, and every:1,1 for N=1.
func every(p Policy, _ halo.HistoryOptions) timetable {
	return timetable{lag: p.Lag, leaving: func(at halo.Slot) int { return periodic(p.Epochs, at.Epoch) }}
}

// periodic returns 0 in epochs 1, n+1, 2n+1 and so on, else -1.
func periodic(n, epoch int) int {
	if (epoch-1)%n == 0 {
		return 0
	}
	return -1
}
