package report

import (
	"testing"

	"siafu/ranks/runfolder"
)

// A long run has a bounded number of epochs in memory, over its whole length, with the elapsed time.
func TestSample(t *testing.T) {
	const n = 100_000
	r := &Run{}
	add := r.sample()
	for k := range n {
		add(&runfolder.Epoch{Epoch: k + 1, Seconds: 2})
	}
	last := r.Epochs[len(r.Epochs)-1]
	if len(r.Epochs) > mostSampled || len(r.Epochs) < mostSampled/2 || r.Lines != n || last.Epoch < n-n/1000 ||
		last.Elapsed != 2*float64(last.Epoch) {
		t.Errorf("%d of %d epochs up to %d after %g s", len(r.Epochs), r.Lines, last.Epoch, last.Elapsed)
	}
}
