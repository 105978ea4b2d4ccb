package engine

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"siafu/halo"
)

// Views is an engine's side of a run whose view may be replaced by another one
// (world.View): between two epochs, if a rank wants that, or at any time.
type Views interface {
	// Wanted tells whether this rank wants the view to end behind the epoch under
	// way. If any does, all parts end it there.
	Wanted() bool
	// Keep takes what the run goes on from, behind each epoch and before the first:
	// s, which is complete on rank 0 alone and stands until Keep returns, and what
	// this part alone knows.
	Keep(s Snapshot, own Own)
	// Replaced is told that the view ends here.
	Replaced()
}

// Own is what a part knows beside what all parts have: halo.Luggage as bytes; nil
// before the first epoch.
type Own []byte

// keep lets the run go on from here in another view, and leaves where all have
// agreed on that. Collective over the graph ranks, which have agreed.
func (t *trainer) keep(epoch int) error {
	if t.views == nil || epoch > t.cfg.Epochs || !t.cfg.Shared(epoch) {
		return nil
	}
	s := Snapshot{Epoch: epoch - 1, Weights: t.flat, History: t.history, Switched: t.cfg.Mode == "async"}
	if t.comm.Rank() == 0 {
		var err error
		if s.Slots, err = t.source.State(); err != nil {
			return err
		}
	}
	t.views.Keep(s, t.pack(epoch))
	if !t.replaced {
		return nil
	}
	t.views.Replaced()
	t.stopped = true
	return t.source.Leave()
}

// want adds to the sums of score that this rank wants another view.
func (t *trainer) want(sums []float64) {
	if t.views != nil && t.views.Wanted() {
		sums[sumReplace] = 1
	}
}

// pack is what this part alone knows at the beginning of an epoch.
func (t *trainer) pack(epoch int) Own {
	source, ok := t.training.ghosts.(halo.Portable)
	if !ok { // no rows travel
		return Own{}
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(source.Pack(epoch)); err != nil {
		panic("engine: a part's state cannot be written: " + err.Error())
	}
	return b.Bytes()
}

// unpack takes up what this part has known where it was before, and lets it know
// what it is going to need elsewhere. Collective over the graph ranks.
func (t *trainer) unpack(own Own) error {
	source, ok := t.training.ghosts.(halo.Portable)
	if t.views == nil || !ok {
		return nil
	}
	source.Record()
	if own == nil {
		return nil
	}
	var l halo.Luggage
	if err := gob.NewDecoder(bytes.NewReader(own)).Decode(&l); err != nil {
		return fmt.Errorf("a part's state cannot be read: %w", err)
	}
	return source.Unpack(l)
}
