package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/ranks/config"
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
	if o.Seeds < 1 {
		return fault.New(fault.Usage, "bench codecs", "", "--seeds=%d", o.Seeds).Then("set 1 or more")
	}
	var lines []codecLine
	for _, name := range o.Codecs {
		rows, err := codec.ByName(name)
		if err != nil {
			return err
		}
		lines = append(lines, codecLine{name: name, codec: rows})
	}
	for seed := range o.Seeds { // interleaved, so that load hits all codecs alike
		for i := range lines {
			if err := lines[i].run(ctx, o, uint64(seed+1)); err != nil {
				return err
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "codec\tratio at width %d\traw MB/epoch\tsent MB/epoch\tratio\ttest accuracy\tto %s\ts/epoch\t\n", o.Config.Hidden, lines[0].name)
	for _, l := range lines {
		l.print(t, o.Config.Hidden, &lines[0])
	}
	return t.Flush()
}

// codecLine has the runs with one codec.
type codecLine struct {
	name      string
	codec     codec.Codec
	accuracy  []float64
	seconds   []float64
	raw, sent float64 // MB per epoch
}

func (l *codecLine) run(ctx context.Context, o CodecsOptions, seed uint64) error {
	c := o.Config
	c.Codec, c.Seed, c.Out, c.CheckpointEvery = l.name, seed, "", "off"
	r, err := trial(ctx, "bench codecs", o.Data, c)
	if err != nil {
		return err
	}
	s, epochs := r.Summary, float64(max(r.Summary.Epochs, 1))
	l.accuracy = append(l.accuracy, s.TestAccAtBestVal)
	l.seconds = append(l.seconds, s.EpochSecondsMedian)
	l.raw, l.sent = float64(s.GhostBytesRaw)/1e6/epochs, float64(s.GhostBytesSent)/1e6/epochs
	return nil
}

func (l *codecLine) print(w io.Writer, width int, first *codecLine) {
	mean, std := meanStd(l.accuracy)
	base, _ := meanStd(first.accuracy)
	fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%.2f\t%.2f ± %.2f\t%+.2f\t%.4f\t\n", l.name, l.rate(width), l.raw, l.sent,
		l.raw/max(l.sent, 1e-9), 100*mean, 100*std, 100*(mean-base), slices.Min(l.seconds))
}

// rate returns the compression ratio of rows of a width, if it does not depend on their
// contents.
func (l *codecLine) rate(width int) string {
	const rows = 1024
	if bytes, fixed := l.codec.Size(rows, width); fixed {
		return fmt.Sprintf("%.2f", float64(4*rows*width)/float64(bytes))
	}
	return "-"
}

// meanStd returns the mean and the standard deviation of x.
func meanStd(x []float64) (mean, std float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		std += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(std)
}
