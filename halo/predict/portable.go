package predict

import (
	"fmt"
	"slices"

	"siafu/halo"
)

var _ halo.Portable = (*Source)(nil)

// Pack implements halo.Portable.
func (s *Source) Pack() (halo.SourceState, error) {
	l, err := s.Collective.(halo.Portable).Pack()
	for _, at := range s.layers {
		if s.recurrent != nil && at != nil {
			n := s.recurrent.layers[at.Layer]
			l.OwnRows = append(l.OwnRows, halo.StoredRows{
				Layer: at.Layer, Rows: slices.Clone(at.pushed), Epochs: slices.Clone(at.epochs),
				Sent: slices.Concat(n.portable()...), SentAt: slices.Clone(n.counts),
			})
		} else if at != nil {
			l.OwnRows = append(l.OwnRows, halo.StoredRows{
				Layer: at.Layer, Rows: at.rows(s.stale), Epochs: slices.Clone(at.epochs),
			})
		}
	}
	return l, err
}

// Unpack implements halo.Portable.
func (s *Source) Unpack(l halo.SourceState) error {
	for _, own := range l.OwnRows {
		if own.Layer < 0 || own.Layer >= len(s.layers) || s.layers[own.Layer] == nil {
			return fmt.Errorf("predict: unexpected own rows of layer %d", own.Layer)
		}
		at := s.layers[own.Layer]
		if s.recurrent != nil {
			if err := s.recurrent.layers[own.Layer].unpack(own); err != nil {
				return err
			}
			continue
		}
		own.Rows, own.Epochs = newest(own.Rows, own.Epochs, len(at.epochs))
		if len(own.Rows) != len(at.epochs)*len(at.now) || len(own.Epochs) != len(at.epochs) || len(own.Sent) != 0 || len(own.SentAt) != 0 {
			return otherSize(own.Layer)
		}
		clear(at.kept)
		at.mapped = 0
		copy(at.epochs, own.Epochs)
		at.setRows(own.Rows)
	}
	return s.Collective.(halo.Portable).Unpack(l)
}

// newest returns the own rows of the newest epochs, at most n, in place of those of all epochs.
func newest(rows []float32, epochs []int32, n int) ([]float32, []int32) {
	if len(epochs) <= n || n == 0 || len(rows)%len(epochs) != 0 {
		return rows, epochs
	}
	each := len(rows) / len(epochs)
	rows, epochs = slices.Clone(rows), slices.Clone(epochs)
	for len(epochs) > n {
		k := slices.Index(epochs, slices.Min(epochs))
		rows, epochs = slices.Delete(rows, k*each, (k+1)*each), slices.Delete(epochs, k, k+1)
	}
	return rows, epochs
}

// rows returns the stored own rows of all epochs. It uses a buffer of one epoch.
func (l *layer) rows(buffer []float32) (rows []float32) {
	for k := range l.epochs {
		rows = append(rows, l.load(k, buffer)...)
	}
	return rows
}

// setRows stores the rows of all epochs.
func (l *layer) setRows(rows []float32) {
	if l.as == nil {
		copy(l.pushed, rows)
		return
	}
	for k, epoch := range l.epochs {
		if epoch > 0 {
			l.as.restore(&l.blocks[k], rows[k*len(l.now):(k+1)*len(l.now)], l.Width)
		}
	}
}

func otherSize(layer int) error {
	return fmt.Errorf("predict: own rows of layer %d have another size", layer)
}

// portable returns the arrays that a predictor goes on from.
func (n *network) portable() [][]float32 {
	return [][]float32{n.weights, n.moments, n.readout, n.scales, n.projected, n.features, n.inputs, n.state,
		n.window, n.latest, n.earlier, n.held}
}

func (n *network) unpack(own halo.StoredRows) error {
	size := 0
	for _, x := range n.portable() {
		size += len(x)
	}
	if len(own.Rows) != len(n.pushed) || len(own.Epochs) != len(n.epochs) || len(own.Sent) != size || len(own.SentAt) != numCounts {
		return otherSize(own.Layer)
	}
	copy(n.pushed, own.Rows)
	copy(n.epochs, own.Epochs)
	copy(n.counts, own.SentAt)
	n.factored = 0
	for _, x := range n.portable() {
		own.Sent = own.Sent[copy(x, own.Sent):]
	}
	return nil
}
