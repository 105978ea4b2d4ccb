package spot

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"siafu/bench/trials"
	"siafu/internal/fault"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule/pipeline"
)

// deepNetwork returns the flags of the part pipelines: a deep network with a stage on each rank. An epoch
// has 8 mini-batches and one update, so that the end of an epoch is the end of its update.
func deepNetwork(stages int) []string {
	return []string{"--model", "gcnii", "--layers", "16", "--hidden", "64", "--batch", "cluster:16,2",
		"--pipeline", strconv.Itoa(stages) + ":microbatches=8", "--servers", "0"}
}

// protected has the measurements of a redundancy, one element for each round of interleaved runs.
type protected struct {
	pipeline.Redundancy
	epochs  []float64 // median seconds of the epochs of a run without a loss
	pauses  []pause   // of runs with --survive
	resumed int       // runs that continued in the middle of an update
}

// pipelines writes the overhead of redundant computation and the time lost with a stage.
func (o Options) pipelines(t *trials.Sheet) {
	t.Fail(o.measure(o.Seed, deepNetwork(o.Ranks), func(ctx context.Context, p *pauses) error {
		list, err := p.protect(ctx)
		if err == nil {
			err = o.compare(t, list)
		}
		return err
	}))
}

// protect trains with each redundancy, without and with a loss.
func (p *pauses) protect(ctx context.Context) ([]protected, error) {
	list := []protected{{Redundancy: pipeline.Off}}
	for _, s := range settings {
		list = append(list, protected{Redundancy: s.redundancy})
	}
	const begun = "\nview number=1 "
	for range p.Losses { // interleaved, so that other load on the machine affects all alike
		for k := range list {
			x := &list[k]
			flags := []string{"--pipeline", "redundancy=" + x.String()}
			epoch, err := p.epoch(ctx, flags...)
			if err != nil {
				return nil, err
			}
			one, err := p.lose(ctx, way{x.String(), nil, append(flags, "--survive"), begun})
			if err != nil {
				return nil, err
			}
			path := p.site.Path("run/log.txt")
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fault.System(op, path, err)
			}
			_, log, _ := strings.Cut(string(text), begun)
			x.epochs, x.pauses = append(x.epochs, epoch), append(x.pauses, one)
			if strings.Contains(log, "\npipeline resumed_epoch=") {
				x.resumed++
			}
		}
	}
	return list, nil
}

// compare writes measurements beside those of the paper. The first ones are without redundancy.
func (o Options) compare(t *trials.Sheet, list []protected) error {
	o.Times = ""
	networks, err := o.modelled()
	if err != nil {
		return err
	}
	updates := map[pipeline.Redundancy]float64{}
	for k, x := range list {
		var ratios []float64 // of interleaved runs
		for round, epoch := range x.epochs {
			ratios = append(ratios, epoch/list[0].epochs[round])
		}
		overhead, paper := "", ""
		if k > 0 {
			median := runfolder.Median(ratios)
			overhead = fmt.Sprintf("%.1f (%.1f to %.1f)", 100*(median-1), 100*(slices.Min(ratios)-1), 100*(slices.Max(ratios)-1))
			paper = fmt.Sprintf("%.2f, %.2f", networks[0].paper[k-1], networks[1].paper[k-1])
		}
		_, begin := spread(x.pauses, func(p pause) float64 { return p.begin })
		median, update := spread(x.pauses, func(p pause) float64 { return p.update })
		updates[x.Redundancy] = median
		t.Add(x.String(), len(x.epochs), runfolder.Median(x.epochs), overhead, paper,
			fmt.Sprintf("%d of %d", x.resumed, len(x.pauses)), begin, update)
	}
	fmt.Fprintf(t, "time until the update has ended with eflb, less than with lflb: %.1f %% (~35 %%)\n",
		100*(1-updates[pipeline.EagerForward]/updates[pipeline.LazyForwardBackward]))
	return nil
}
