package ranks

import (
	"fmt"
	"io"
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/host"
	"siafu/internal/screen"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/predictions"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
	"siafu/ranks/tensor"
)

// reporter writes the output of a run and its folder, on rank 0. The methods of a nil reporter
// (other ranks) do nothing. It implements engine.Reporter.
type reporter struct {
	cfg        Config
	out        IO
	folder     *runfolder.Folder
	screen     *screen.Screen
	accuracies string // of the newest evaluation, for the screen
	metric     string // name of the metric in accuracies
	started    time.Time
	before     float64 // seconds before the run was resumed
	account    account
	budget     budget

	text   bool      // the terminal shows text in place of the lines of the log
	headed bool      // the header is printed
	begun  bool      // writing of the run folder has begun
	told   int       // the newest epoch with a written line
	epochs []float64 // seconds of each epoch
	raw    int64     // ghost bytes
	sent   int64

	predictSeconds         float64
	predictBytes           int64
	predictions, fallbacks int64

	disk                      runfolder.Disk
	trainSeconds, evalSeconds float64

	history *stopping.History

	saving time.Duration // time and bytes of all checkpoints
	saved  int64
}

func newReporter(c Config, folder *runfolder.Folder, kind string, out IO) *reporter {
	width := screen.Width(out.Out, kind == "mpi")
	text := c.LogFormat == logText || c.LogFormat == logAuto && width > 0
	return &reporter{cfg: c, out: out, folder: folder, screen: screen.New(out.Out, width), text: text,
		started: time.Now(), budget: newBudget(&c)}
}

// log writes a line of key=value pairs to the log, and prints it unless the
// run is quiet or the terminal gets text.
func (p *reporter) log(format string, args ...any) { p.Note(fmt.Sprintf(format, args...) + "\n") }

// Note implements engine.Reporter.
func (p *reporter) Note(text string) {
	if p == nil {
		return
	}
	io.WriteString(p.folder.Log(), text)
	if !p.cfg.Quiet && !p.text {
		io.WriteString(p.out.Out, text)
	}
}

// seconds returns the duration of the run, in all its parts.
func (p *reporter) seconds() float64 { return p.before + time.Since(p.started).Seconds() }

// cost returns the dollars of the run, in all its parts.
func (p *reporter) cost() float64 { return p.account.total(p.seconds()) }

// count adds an epoch to the summary's totals.
func (p *reporter) count(e runfolder.Epoch) {
	p.epochs = append(p.epochs, e.Seconds)
	p.raw += e.GhostBytesRaw
	p.sent += e.GhostBytesSent
	p.predictSeconds += e.PredictSeconds
	p.predictBytes = max(p.predictBytes, e.PredictBytes)
	p.predictions += e.Predictions
	p.fallbacks += e.PredictFallbacks
	p.trainSeconds += e.Seconds
	p.evalSeconds += e.EvalSeconds
	p.disk.FetchWaitSeconds += e.FetchWaitSeconds
	p.disk.DiskBytesRead += e.DiskBytesRead
	p.disk.DiskBytesWritten += e.DiskBytesWritten
}

// warn prints a problem that does not end the run.
func (p *reporter) warn(format string, args ...any) {
	if p != nil {
		io.WriteString(p.folder.Log(), fmt.Sprintf(format, args...)+"\n")
		warn(p.out, format, args...)
	}
}

func warn(out IO, format string, args ...any) {
	fmt.Fprintf(out.Err, "siafu: "+format+"\n", args...)
}

// say writes a line to the log and prints it.
func (p *reporter) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	io.WriteString(p.folder.Log(), line)
	io.WriteString(p.out.Out, line)
}

// note writes a line to the log alone.
func (p *reporter) note(format string, args ...any) {
	io.WriteString(p.folder.Log(), fmt.Sprintf(format, args...)+"\n")
}

// header prints the description of the run.
func (p *reporter) header(r *prepared) error {
	if p == nil || p.headed {
		return nil
	}
	p.headed = true
	p.metric = metricOf(r.task)
	p.account = accountOf(r.member)
	m, c := r.meta, r.cfg
	if r.task != graph.MultiClass {
		p.log("task name=%s metric=%s", r.task, p.metric)
	}
	p.log("siafu version=%s run=%s", Version, p.folder.Dir())
	p.log("dataset name=%s vertices=%d edges=%d features=%d(%s) classes=%d train=%d val=%d test=%d",
		m.Name, m.Vertices, m.Edges, m.FeatureDim, m.FeatureKind, m.Classes, m.Train, m.Val, m.Test)
	if m.Synthetic {
		p.log("dataset synthetic=true: accuracies on a generated graph do not predict those on the real graph")
	}
	p.log("world kind=%s ranks=%d graph_ranks=%d servers=%d parts=%d threads=%d kernel=%s mode=%s staleness=%d "+
		"refresh=%s gather=%s codec=%s",
		r.kind, r.view.Started(), r.view.Ranks, r.Servers, r.view.Parts, r.rankThreads, r.engine.Kernel(), c.Mode,
		c.Staleness, c.Refresh, c.Gather, c.Codec)
	if c.Precision == "mixed" || c.RoundsProducts() {
		p.log("precision gather=%s features=%s products=%s", c.Gather, c.Features, c.Products)
	}
	if c.Predicts() {
		p.log("predict kind=%s rows=%d history=%s", c.Predict, c.PredictRows, c.PredictHistory)
		if c.TrainsPredictor() {
			p.log("predict every=%d window=%d lr=%g input=%s hold=%t", c.PredictEvery, c.PredictWindow, c.PredictLR,
				c.PredictInput, c.PredictHold)
		}
	}
	if r.net.WholeRows {
		p.log("refresh_rows whole: rows of hidden layers are gathered before their product, and sent before their dropout; "+
			"input_dropout=%g", r.net.InputDropout)
	}
	if r.view.Bridges > 0 {
		p.log("bridges ranks=%d", r.view.Bridges)
	}
	p.log("model kind=%s dims=%v weights=%d dropout=%g input_dropout=%g optimizer=%s lr=%g weight_decay=%g(%s) initializer=%s seed=%d",
		c.Model, r.net.Dims, r.net.NumWeights(), c.Dropout, r.net.InputDropout, c.Optimizer, c.LR, c.WeightDecay,
		c.WeightDecayOn, c.Initializer, c.Seed)
	p.settings(r)
	p.log("plan %s", r.orders)
	p.printDecisions(r.decided)
	if r.codedBits > 0 {
		p.log("edges coded bits=%.2f", r.codedBits)
	}
	if c.Scratch != "" {
		if host.InMemory(c.Scratch) {
			p.warn("warning: --memory scratch=%s is on a file system in memory, and so are its values; choose a folder on a disk", c.Scratch)
		}
		at := &r.placement
		p.log("scratch dir=%s memory_limit=%d memory=%d file=%d slices=%d contents=%q", c.Scratch, at.limit, at.resident, at.disk,
			max(c.Slices, 1), strings.Join(at.streamed, ", "))
		f := &at.files
		p.log("files reads=%s page_cache=%d stay=%d start_read=%d start_written=%d epoch_read=%d epoch_written=%d "+
			"evaluation_read=%d run_read=%d run_written=%d",
			f.Reads(), f.Cache, f.StayRead+f.StayWritten, f.Start.Read, f.Start.Written, f.Epoch.Read, f.Epoch.Written,
			f.Evaluation.Read, f.Run.Read, f.Run.Written)
	}
	if p.text && !c.Quiet {
		p.printHeader(r)
	}
	return nil
}

// settings prints the settings chosen for the graph or from a recipe, and those without
// effect.
func (p *reporter) settings(r *prepared) {
	c, line := &r.cfg, ""
	for _, s := range c.Chosen {
		line += fmt.Sprintf(" %s (%s)", config.Spell(s.Flag, s.Value), s.Why)
	}
	if line != "" {
		p.log("selected for this graph:%s; disable with --defaults fixed", line)
	}
	if c.Recipe != "" {
		p.log("recipe name=%s %s", c.Recipe, c.RecipeSays())
		for _, flag := range c.Changed() {
			p.log("recipe changed %s", flag)
		}
	}
	if doubt := c.Doubts(r.meta); doubt != "" {
		p.warn("warning: %s", doubt)
	}
	for _, idle := range c.Idle(r.meta) {
		p.warn("warning: %s", idle)
	}
}

// Epoch implements engine.Reporter.
func (p *reporter) Epoch(e runfolder.Epoch, spent tensor.Spent) error {
	if p == nil {
		return nil
	}
	e.LambdaInvocations, e.LambdaGBSeconds = spent.Invocations, p.account.add(spent)
	if e.Epoch <= p.told { // trained again in another view, with the same numbers
		return nil
	}
	p.told = e.Epoch
	e.LambdaUSD, e.CostUSD = p.account.invocations().LambdaUSD, p.cost()
	if p.metric != accuracy {
		e.Metric = p.metric
	}
	e.Time, e.Elapsed = time.Now().UTC().Truncate(time.Millisecond), p.seconds()
	p.budget.spent(e.CostUSD)
	p.count(e)
	p.progress(e)
	return p.folder.AppendEpoch(e)
}

// result records the scores of the best and the last weights.
func (p *reporter) result(h *stopping.History) {
	if p == nil {
		return
	}
	p.screen.End()
	p.history = h
}

// finish writes model and summary and prints the final lines.
func (p *reporter) finish(r *begun, ranks []runfolder.RankReport) error {
	if err := p.folder.Present(); err != nil {
		return err
	}
	s, h := p.summary(r, ranks), p.history
	if h.Best != nil {
		if err := predictions.WriteKnown(p.folder.Dir(), r.data); err != nil {
			return err
		}
		if err := p.folder.WriteModel(engine.Tensors(r.net, h.Best), modelMetadata(r.joined, s)); err != nil {
			return err
		}
	}
	r.fault.At(inject.Summary, 0)
	if err := p.folder.WriteSummary(s); err != nil {
		return err
	}
	say, always := p.say, p.say // in a quiet run, scores and files are printed
	switch {
	case p.cfg.Quiet:
		say = p.note
	case p.text:
		p.printSummary(&s)
		say, always = p.note, p.note
	}
	say("trained dataset=%s model=%s layers=%d hidden=%d ranks=%d servers=%d parts=%d epochs=%d stopped_by=%s "+
		"seconds=%.2f epoch_seconds_median=%.4f",
		s.Dataset, s.Model, s.Layers, s.Hidden, s.Ranks, s.Servers, s.Parts, s.Epochs, s.StoppedBy, s.TotalSeconds, s.EpochSecondsMedian)
	if h.Best != nil {
		always("%s test_at_best_val=%.4f%s best_val=%.4f best_epoch=%d final_test=%.4f final_loss=%.4f majority_test=%.4f",
			p.metric, s.TestAccAtBestVal, balancedTest(s.Metrics), s.BestValAcc, s.BestEpoch, s.FinalTestAcc,
			s.FinalLoss, s.MajorityTestAcc)
		for _, line := range choiceLines(&p.cfg, p.metric, s.BestEpoch, h.Validated) {
			say("%s", line)
		}
	}
	printMetrics(say, s.Metrics)
	if f := s.Disk; f != nil {
		say("disk fetch_wait_seconds=%.3f share=%.2f%% disk_bytes_read=%d disk_bytes_written=%d disk_mb_per_second=%.1f",
			f.FetchWaitSeconds, 100*f.Share, f.DiskBytesRead, f.DiskBytesWritten, f.ReadMBPerSecond)
	}
	for _, rank := range s.PerRank {
		if rank.ScratchBytes > 0 {
			say("scratch rank=%d file_bytes=%d disk_bytes_read=%d disk_bytes_written=%d", rank.Rank, rank.ScratchBytes,
				rank.DiskBytesRead, rank.DiskBytesWritten)
		}
	}
	say("cost peak_rss_bytes=%d ghost_bytes_raw=%d ghost_bytes_sent=%d", s.PeakRSSBytes, s.GhostBytesRaw, s.GhostBytesSent)
	if p.cfg.Predicts() {
		say("predict kind=%s seconds=%.3f bytes=%d predictions=%d fallbacks=%d", s.Predict, s.PredictSeconds, s.PredictBytes,
			s.Predictions, s.PredictFallbacks)
	}
	if p.account.paid() {
		say("%s", p.account.line(&s))
	}
	if p.saved > 0 {
		say("checkpoints bytes=%d seconds=%.3f share=%.2f%%", p.saved, p.saving.Seconds(), 100*p.saving.Seconds()/(s.TotalSeconds-p.before))
	}
	wrote := "wrote"
	if h.Best != nil {
		wrote += " model=" + modelFile(p.folder.Dir())
	}
	always("%s summary=%s/summary.json", wrote, p.folder.Dir())
	if h.Divergence != nil {
		return h.Divergence.Fault(p.folder.Dir(), p.cfg.LR, h.BestLine.Epoch)
	}
	return nil
}

func (p *reporter) summary(r *begun, ranks []runfolder.RankReport) runfolder.Summary {
	c, h := p.cfg, p.history
	s := runfolder.Summary{
		Version: Version, Dataset: r.meta.Name, Synthetic: r.meta.Synthetic,
		Recipe: c.Recipe, Changed: c.Changed(), Taken: c.Chosen,
		Model: c.Model, Layers: c.Layers, Hidden: c.Hidden, Initializer: c.Initializer, World: r.kind,
		Ranks: r.view.Started(), Servers: r.Servers, Bridges: r.view.Bridges, Parts: r.view.Parts, Threads: r.rankThreads,
		Mode: c.Mode, Staleness: c.Staleness, Switched: r.from.Switched, Refresh: c.Refresh,
		Codec: c.Codec, Chosen: r.engine.ChosenCodec(), Tensor: c.Tensor, Seed: c.Seed, Kernel: r.engine.Kernel(), Decided: r.decided,
		Epochs: h.Trained(), StoppedBy: h.StoppedBy, BestEpoch: h.BestLine.Epoch,
		Task: r.task, Metric: metricOf(r.task), Metrics: runfolder.NewScores(r.engine.Metrics(), r.meta.ClassName),
		Monitor: c.Monitor, ClassWeights: c.ClassWeights,
		MajorityTestAcc: r.shard.MajorityTest, EpochSecondsMedian: runfolder.Median(p.epochs), TotalSeconds: p.seconds(),
		GhostBytesRaw: p.raw, GhostBytesSent: p.sent, PerRank: ranks,
		PredictSeconds: p.predictSeconds, PredictBytes: p.predictBytes, Predictions: p.predictions,
		PredictFallbacks: p.fallbacks, Predict: c.Predict,
	}
	if c.FetchesFiles() {
		f := p.disk
		f.Share, f.ReadMBPerSecond = f.FetchWaitSeconds/max(p.trainSeconds, 1e-9), readRate(f.DiskBytesRead, p.trainSeconds+p.evalSeconds)
		s.Disk = &f
	}
	if h.Best != nil {
		last, best := h.Last, h.BestLine
		s.FinalLoss, s.FinalTrainAcc, s.FinalValAcc, s.FinalTestAcc = last.Loss, *last.TrainAcc, *last.ValAcc, *last.TestAcc
		s.BestValAcc, s.TestAccAtBestVal = *best.ValAcc, *best.TestAcc
	}
	p.account.summarise(&s)
	for _, rank := range ranks {
		s.PeakRSSBytes = max(s.PeakRSSBytes, rank.PeakRSSBytes)
	}
	return s
}

func (p *reporter) close() {
	if p != nil {
		p.folder.Close()
	}
}
