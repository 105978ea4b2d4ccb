package refresh

import (
	"math"

	"siafu/halo"
	"siafu/halo/codec"
)

var driftKind = kind{
	entry: entry{Name: "drift", Form: "drift:THETA[,K]",
		Help: "the rows, or gradients, of one layer for one rank are sent when ‖H − S‖ ≥ THETA·‖S‖, where S are those sent last, " +
			"and after K (default 10) epochs at the latest (SANCUS, VLDB'22)"},
	timetable: drifting, needsStoredRows: true, frames: true, share: atMostAll,
	least: 1, defaults: Policy{Epochs: 10}, params: []parameter{
		value("THETA a fraction of a block's norm, 0 or more", func(x float64) bool { return x >= 0 }, -1),
		{"K a number of epochs, 1 or more", func(p *Policy, text string) bool { return count(&p.Epochs, text, 1, mostEpochs) },
			func(p *Policy) string { return unless(p.Epochs, 10) }},
	},
}

// drift is SANCUS (Peng et al., "SANCUS: Staleness-aware communication-avoiding full-graph
// decentralized training in large-scale graph neural networks", VLDB'22): a rank sends a
// block, which is the rows of a layer for one rank, only if it has moved. Otherwise it
// notifies the other rank, which continues to use the last block. Gradients follow the same
// rule.
//
// A block H has moved if |H - S| >= THETA·|S|, where S is the block sent last and |·| the
// Frobenius norm. With THETA=0 every block has moved, and the policy equals always. After K
// epochs a block is sent even if it has not moved, so that no used row is K epochs old.
type drift struct {
	theta float64
	most  int
}

func drifting(p Policy, _ halo.HistoryOptions) timetable {
	return timetable{leaving: func(halo.Slot) int { return 0 }, gradsPersist: true, drift: &drift{p.Value, p.Epochs}}
}

// sent has the rows sent last, and their epochs by rank; 0: never.
type sent struct {
	rows   []float32
	epochs []int32
}

// isUnchanged reports whether the rows for rank q, which start at place in the list, have not
// moved. If they have, it records them as sent.
func (d *drift) isUnchanged(s *sent, epoch, q, place int, rows codec.Rows) bool {
	last := s.rows[place*rows.Cols : (place+rows.Len)*rows.Cols]
	if s.epochs[q] > 0 && epoch-int(s.epochs[q]) < d.most && !d.moved(last, rows) {
		return true
	}
	for i := range rows.Len {
		copy(last[i*rows.Cols:(i+1)*rows.Cols], rows.Row(i))
	}
	s.epochs[q] = int32(epoch)
	return false
}

// moved compares norms in float64, in the order of rows. Rows that are not finite
// have moved.
func (d *drift) moved(last []float32, rows codec.Rows) bool {
	difference, norm := 0.0, 0.0
	for i := range rows.Len {
		for j, x := range rows.Row(i) {
			y := float64(last[i*rows.Cols+j])
			difference += float64((float64(x) - y) * (float64(x) - y))
			norm += float64(y * y)
		}
	}
	return !(math.Sqrt(difference) < d.theta*math.Sqrt(norm))
}
