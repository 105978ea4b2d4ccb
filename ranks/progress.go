package ranks

import (
	"fmt"
	"time"

	"siafu/internal/screen"
	"siafu/ranks/runfolder"
)

// progress shows an epoch, and writes it to the log.
func (p *reporter) progress(e runfolder.Epoch) {
	full := p.fullLine(e)
	fmt.Fprintln(p.folder.Log(), full)
	if !p.cfg.Quiet {
		p.screen.Epoch(full, func(width int) string { return p.shortLine(e, width) }, len(p.epochs) == 1 || e.Epoch == p.cfg.Epochs)
	}
}

// recentSeconds returns the median duration of the last few epochs. The median of all epochs takes longer than
// an epoch on a small graph.
func (p *reporter) recentSeconds() float64 {
	return runfolder.Median(p.epochs[max(len(p.epochs)-32, 0):])
}

func (p *reporter) remainingTime(e runfolder.Epoch) time.Duration {
	return time.Duration(float64(p.cfg.Epochs-e.Epoch) * p.recentSeconds() * float64(time.Second)).Round(time.Second)
}

// fullLine returns an epoch as key=value pairs.
func (p *reporter) fullLine(e runfolder.Epoch) string {
	line := fmt.Sprintf("epoch=%d/%d loss=%.4f", e.Epoch, p.cfg.Epochs, e.Loss)
	if e.ValAcc != nil {
		m := metricLabel(p.metric)
		line += fmt.Sprintf(" train_%s=%.4f val_%s=%.4f test_%s=%.4f", m, *e.TrainAcc, m, *e.ValAcc, m, *e.TestAcc)
	}
	for name, value := range e.ValMetrics { // at most one
		line += fmt.Sprintf(" val_%s=%.4f", name, value)
	}
	if s := e.Staleness; s != nil {
		line += fmt.Sprintf(" staleness=%.3g gradient_error=%.3g", s.Most(), s.GradientError)
	}
	line += fmt.Sprintf(" seconds=%.4f left=%s", e.Seconds, p.remainingTime(e))
	if p.cfg.FetchesFiles() {
		line += fmt.Sprintf(" fetch_wait=%.4f disk_mb_per_second=%.1f", e.FetchWaitSeconds,
			readRate(e.DiskBytesRead, e.Seconds+e.EvalSeconds))
	}
	if p.account.paid() {
		line += fmt.Sprintf(" usd=%.6f", e.CostUSD)
	}
	return line
}

// readRate returns a rate in MB/s.
func readRate(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(bytes) / 1e6 / seconds
}

// shortLine returns an epoch for a terminal, without words that do not fit.
func (p *reporter) shortLine(e runfolder.Epoch, width int) string {
	if e.ValAcc != nil {
		p.accuracies = fmt.Sprintf("val %.2f%%, test %.2f%%", 100**e.ValAcc, 100**e.TestAcc)
		if p.metric != accuracy {
			p.accuracies = fmt.Sprintf("%s val %.4f, test %.4f", p.metric, *e.ValAcc, *e.TestAcc)
		}
		for name, value := range e.ValMetrics { // at most one
			p.accuracies = fmt.Sprintf("%s val %.4f, %s", name, value, p.accuracies)
		}
	}
	words := []string{fmt.Sprintf("loss %.4f", e.Loss), fmt.Sprintf("%5s left", p.remainingTime(e)), p.accuracies,
		fmt.Sprintf("%.3g s/epoch", p.recentSeconds())}
	if e.Seconds > 0 {
		words = append(words, fmt.Sprintf("waits %2.0f%%", 100*min(e.WaitSeconds/e.Seconds, 1)))
	}
	if e.DiskBytesRead > 0 {
		words = append(words, fmt.Sprintf("disk %.0f MB/s, waits %2.0f%%", readRate(e.DiskBytesRead, e.Seconds+e.EvalSeconds),
			100*min(e.FetchWaitSeconds/max(e.Seconds, 1e-9), 1)))
	}
	if e.GhostBytesSent > 0 {
		words = append(words, fmt.Sprintf("sent %.3g MB", float64(e.GhostBytesSent)/1e6))
	}
	if e.PeakRSSBytes > 0 {
		words = append(words, fmt.Sprintf("%.0f MB", float64(e.PeakRSSBytes)/1e6))
	}
	if p.account.paid() {
		words = append(words, fmt.Sprintf("$%.4f", e.CostUSD))
	}
	count := fmt.Sprintf("%*d/%d", len(fmt.Sprint(p.cfg.Epochs)), e.Epoch, p.cfg.Epochs)
	line := count + " " + screen.Bar(float64(e.Epoch)/float64(max(p.cfg.Epochs, 1)), min(width/6, maxBarWidth))
	for _, w := range words {
		if w != "" && len(line)+2+len(w) <= width {
			line += "  " + w
		}
	}
	return line
}

// maxBarWidth is the maximal width of the bar in columns.
const maxBarWidth = 20
