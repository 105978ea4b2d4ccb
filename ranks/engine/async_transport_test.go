package engine

import (
	"testing"

	"siafu/internal/fault"
	"siafu/internal/wire"
)

// A message of another mode, or a tally of another length, is an error and changes nothing.
func TestUnexpectedMessages(t *testing.T) {
	async, free := &asyncRank{AsyncScheduler: &AsyncScheduler{Epochs: 9}}, &freeRank{pushed: noRows{}}
	async.tallies.ranks, free.results.ranks = 4, 4
	for h, list := range map[messageHandler][]wire.Message{
		async: {{Kind: wire.Leaving}, {Kind: wire.RowsStored}, tallyMessage(1, newTally()[1:])},
		free:  {{Kind: wire.Stop}, {Kind: wire.RowsStored}, {Kind: wire.Leaving}, tallyMessage(1, newTally()[1:])},
	} {
		for _, m := range list {
			if err := h.handleWire(3, m); fault.KindOf(err) != fault.Runtime || async.Epochs != 9 {
				t.Errorf("%T, %v: %v, %d epochs", h, m.Kind, err, async.Epochs)
			}
		}
	}
}
