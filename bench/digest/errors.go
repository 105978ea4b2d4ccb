package digest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"siafu/bench/trials"
	"siafu/ranks/runfolder"
)

// measuredEvery is the interval of staleness measurements in epochs. It must not divide the
// periods of refreshes.
const measuredEvery = 3

// errorEpochs has the columns of figure 10: epochs with measurements.
var errorEpochs = []int{1, 4, 10, 19, 40, 58, 97}

// figure10 writes the error of the gradient during training and, after it, the relative staleness
// of the stalest layer.
func (b *bench) figure10(ctx context.Context, t *trials.Sheet) error {
	columns := []string{"graph", "ranks", "system"}
	for _, e := range errorEpochs {
		columns = append(columns, fmt.Sprintf("epoch %d", e))
	}
	t.Head(columns...)
	stale := b.only("DIGEST", "DIGEST-rows", "PipeGCN", "PipeGCN-GF", "BNS-GCN", "DistGNN", "SANCUS", "REST", "PipeQS", "partition-only")
	for _, c := range b.cells(b.Models[:1]) {
		for _, s := range stale {
			r, err := b.archive.Get(ctx, trials.Trial{Data: c.graph.Data, Ranks: c.worldSize(s), Flags: b.flags(c, s,
				"--epochs", strconv.Itoa(b.Epochs), "--eval-every", "0", "--measure-staleness", strconv.Itoa(measuredEvery))})
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\t%d\t%s", c.graph.Name, c.ranks, s.Name)
			for _, e := range errorEpochs {
				fmt.Fprintf(t, "\t%s", errorsIn(r, e))
			}
			fmt.Fprintln(t, "\t")
		}
	}
	return nil
}

// errorsIn returns the errors of one epoch of a training.
func errorsIn(r *trials.Result, epoch int) string {
	if r == nil {
		return "-"
	}
	k := slices.IndexFunc(r.Epochs, func(e runfolder.Epoch) bool { return e.Epoch == epoch })
	if k < 0 || r.Epochs[k].Staleness == nil {
		return "-"
	}
	s := r.Epochs[k].Staleness
	return fmt.Sprintf("%.3f, %.3f", s.GradientError, s.Most())
}
