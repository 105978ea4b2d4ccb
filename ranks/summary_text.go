package ranks

import (
	"fmt"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/ranks/runfolder"
)

// Values of --log-format.
const (
	logAuto = "auto" // logText on a terminal, else key=value lines
	logText = "text"
)

// print writes a line of text output to the terminal, and not to the log.
func (p *reporter) print(label, format string, args ...any) {
	fmt.Fprintf(p.out.Out, "%-9s %s\n", label, fmt.Sprintf(format, args...))
}

// printHeader prints what is going to run.
func (p *reporter) printHeader(r *prepared) {
	m, c := r.meta, &r.cfg
	p.print("run", "%s, siafu %s", p.folder.Dir(), Version)
	p.print("graph", "%s: %s vertices, %s edges, %s features", m.Name, grouped(m.Vertices), grouped(m.Edges), grouped(int64(m.FeatureDim)))
	if r.task == graph.MultiClass {
		p.print("", "%d classes; %s training, %s validation, %s test vertices", m.Classes, grouped(m.Train),
			grouped(m.Val), grouped(m.Test))
	}
	if m.Synthetic {
		p.print("", "synthetic: accuracies do not predict those on the real graph")
	}
	p.print("network", "%s %s, %s weights, dropout %g, %s, learning rate %g, seed %d",
		c.Model, dashed(r.net.Dims), grouped(int64(r.net.NumWeights())), c.Dropout, c.Optimizer, c.LR, c.Seed)
	p.print("ranks", "%s, %s, %s each, %s; %s world",
		plural(r.view.Ranks, "graph rank"), plural(r.Servers, "server"), plural(r.rankThreads, "thread"), r.engine.Kernel(), r.kind)
	if r.codedBits > 0 {
		p.print("edges", "columns coded, about %.1f bits per edge (--memory edges=%s)", r.codedBits, c.Edges)
	}
	p.print("exchange", "mode %s, refresh %s, codec %s", c.Mode, c.Refresh, c.Codec)
	if c.Predicts() {
		from := ""
		if c.PredictRows > 0 {
			from = fmt.Sprintf(", from at most %s own rows", grouped(int64(c.PredictRows)))
		}
		p.print("", "ghost rows predicted: %s%s", c.Predict, from)
	}
}

// printSummary prints how a run ended.
func (p *reporter) printSummary(s *runfolder.Summary) {
	p.print("trained", "%d epochs in %.1f s, %.4f s per epoch (stopped by: %s)", s.Epochs, s.TotalSeconds,
		s.EpochSecondsMedian, s.StoppedBy)
	if p.history.Best != nil {
		line := fmt.Sprintf("test %.4f, validation %.4f", s.TestAccAtBestVal, s.BestValAcc)
		if p.metric == accuracy {
			line += fmt.Sprintf(", largest class %.4f", s.MajorityTestAcc)
		}
		p.print(metricLabel(p.metric), "%s", line)
		if m := s.Metrics; m != nil && m.Test != nil && m.Test.BalancedAccuracy != nil {
			p.print("", "balanced accuracy %.4f", *m.Test.BalancedAccuracy)
		}
		for _, line := range choiceLines(&p.cfg, p.metric, s.BestEpoch, p.history.Validated) {
			p.print("", "%s", line)
		}
	}
	p.print("memory", "%.0f MB of the largest rank; ghost rows %.1f MB, sent as %.1f MB",
		float64(s.PeakRSSBytes)/1e6, float64(s.GhostBytesRaw)/1e6, float64(s.GhostBytesSent)/1e6)
	if f := s.Disk; f != nil {
		p.print("disk", "%.0f MB read at %.0f MB/s; tasks waited %.1f s for files (%.0f%% of the epochs)",
			float64(f.DiskBytesRead)/1e6, f.ReadMBPerSecond, f.FetchWaitSeconds, 100*f.Share)
	}
	if p.cfg.Predicts() {
		p.print("predict", "%s: %d predictions in %.2f s, stale rows instead of %d", s.Predict, s.Predictions,
			s.PredictSeconds, s.PredictFallbacks)
	}
	if p.account.paid() {
		p.print("cost", "%.6f USD", s.CostUSD)
	}
	if p.history.Best != nil {
		p.print("files", "%s", modelFile(p.folder.Dir()))
	}
	p.print("", "%s/summary.json", p.folder.Dir())
}

// grouped returns a number with commas between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// dashed returns a list of widths, as 1433-16-7.
func dashed(list []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", "-")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
