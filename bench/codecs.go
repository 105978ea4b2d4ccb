package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	"siafu/bench/trials"
	"siafu/halo/codec"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// CodecsOptions are the options of bench codecs. Training flags are train's.
type CodecsOptions struct {
	Data   string        `arg:"" help:"Dataset folder."`
	Codecs []string      `name:"codecs" default:"none,zstd,bf16,int8,int8+zstd,int4,int4+zstd,int4+ef,adaptive,polyline,polyline:2" help:"Codecs to compare."`
	Seeds  int           `default:"5" help:"Number of seeds to average, from 1."`
	Config config.Config `embed:""`
}

// Run trains with each codec and the same seeds, and compares bytes sent and accuracy.
func (o CodecsOptions) Run(ctx context.Context, w io.Writer) error {
	e := &experiment{op: "bench codecs", data: o.Data, config: o.Config, row: func(s, first *setting) string {
		mean, std := trials.MeanStd(s.each(testAccuracy))
		base, _ := trials.MeanStd(first.each(testAccuracy))
		n := 1e6 * float64(max(s.last().Epochs, 1))
		raw, sent := float64(s.last().GhostBytesRaw)/n, float64(s.last().GhostBytesSent)/n
		return fmt.Sprintf("%s\t%s\t%.3f\t%.3f\t%.2f\t%.2f ± %.2f\t%+.2f\t%.4f", s.name, codecRatio(s.name, o.Config.Hidden), raw, sent,
			raw/max(sent, 1e-9), 100*mean, 100*std, 100*(mean-base), slices.Min(s.each(medianSeconds)))
	}}
	e.config.Out, e.config.CheckpointEvery = "", "off"
	for _, name := range o.Codecs {
		if _, err := codec.ByName(name); err != nil {
			return err
		}
		e.add(name, func(c *config.Config, turn int) { c.Codec, c.Seed = name, uint64(turn+1) })
	}
	if err := e.train(ctx, "seeds", o.Seeds); err != nil {
		return err
	}
	e.head = fmt.Sprintf("codec\tratio at width %d\traw MB/epoch\tsent MB/epoch\tratio\ttest accuracy\tto %s\ts/epoch", o.Config.Hidden, o.Codecs[0])
	return e.print(w)
}

func testAccuracy(s runfolder.Summary) float64  { return s.TestAccAtBestVal }
func medianSeconds(s runfolder.Summary) float64 { return s.EpochSecondsMedian }

// codecRatio returns the compression ratio of rows of a width, if it does not depend on their
// contents.
func codecRatio(name string, width int) string {
	const rows = 1024
	c, err := codec.ByName(name)
	if err != nil {
		return "-"
	}
	if bytes, fixed := c.Size(rows, width); fixed {
		return fmt.Sprintf("%.2f", float64(4*rows*width)/float64(bytes))
	}
	return "-"
}
