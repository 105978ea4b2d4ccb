package engine

import (
	"time"

	"siafu/graph"
	"siafu/halo"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/config"
	"siafu/ranks/inject"
	"siafu/ranks/params"
	"siafu/ranks/params/protocol"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
	"siafu/ranks/stopping"
	"siafu/ranks/trace"
	"siafu/ranks/tune"
	"siafu/ranks/world"
)

// trainer is one graph rank in the synchronous modes.
type trainer struct {
	*lockstep
	parameters
	control
	accounts
	engine        *Engine
	cfg           config.Config
	comm          world.Comm // of the graph ranks
	net           model.Spec
	steps         stepper
	phases        *tune.Phases // of --refresh auto (routes.alternate)
	before, after hooks        // of an epoch's steps
	now           epochState
}

// parameters are the weights of a network on a graph rank.
type parameters struct {
	flat          []float32        // the weights that all intervals share
	grad          []float32        // their gradient on this rank
	layers        []protocol.Range // of flat and grad
	sharedWeights kernels.Mat      // flat [weights x 1], in the intervals' memory
	deviceGrad    kernels.Mat      // grad, in the intervals' memory
	parts         []kernels.Mat    // of the sum of gradients
	source        params.Source
}

// control decides when a run saves, ends, or continues in another view.
type control struct {
	history        *stopping.History
	saver          Saver
	servers        params.Control  // whose processes also receive requests
	pendingRequest signals.Request // of any rank, in the current epoch: the same on all graph ranks
	stopped        bool            // the run was asked to stop, and has saved, or the view ends
	views          Views           // nil with a single view
	storage        storage         // of states, with views
	viewRequested  bool            // whether any rank requests another view after the current epoch: the same on all graph ranks
}

// noSaver is the Saver of a run that only evaluates, which accepts no requests.
type noSaver struct{}

func (noSaver) Every() checkpoint.Interval        { return checkpoint.Interval{} }
func (noSaver) Pending(int, bool) signals.Request { return signals.None }
func (noSaver) Save(checkpoint.State, bool)       {}
func (noSaver) Served(time.Duration)              {}

// replaceable reports whether the view may be replaced.
func (c *control) replaceable() bool { return c.views != nil }

// accounts are the numbers that a rank reports.
type accounts struct {
	reporter      Reporter
	peaks         host.Peaks // of this process
	disk          diskAccount
	sums          []float64 // summed over ranks
	observed      *outcomes // nil outside of observations
	notedFallback bool      // noteFallback has printed a line
}

// Train trains synchronously. source has the weights. Unless the run
// was asked to stop, the history ends with it. Collective over the graph ranks; servers, if
// any, serve it.
func (e *Engine) Train(b Beginning, source params.Source, servers params.Control, h *stopping.History, s Saver) error {
	reduction, err := e.reduce()
	if err != nil {
		return err
	}
	t, err := e.trainer(source, reduction, syncMemory(e.Config, e.Peers.Size()))
	if err != nil {
		return err
	}
	if t.steps, err = e.newBatches(t, &b); err != nil {
		return err
	}
	t.history, t.saver, t.servers, t.views = h, s, servers, e.Views
	t.routes.reserveResiduals()
	if t.routes.alternate() {
		t.phases = tune.NewPhases(b.Epoch, e.Config.Epochs, b.Exact)
		if plan := e.Config.Recorded.Policies; len(plan) > 0 {
			t.phases.Follow(without(plan))
		}
	}
	defer e.describeWaits(t.steps.activity, nil, e.comms()...)()
	tuning := e.beginTuning(t.lockstep, b.Epoch)
	if err := t.steps.unpack(b.Part); err != nil {
		return err
	}
	t.disk.read, t.disk.written = host.DiskBytes()
	t.addHooks(tuning)
	if err := t.loop(b.Epoch); err != nil {
		return err
	}
	if err := t.evaluateBest(); err != nil {
		return err
	}
	return t.settle()
}

// Memory returns the lifetime of values while a run trains.
func Memory(c config.Config, parts int) model.Memory {
	if c.Mode == "async" {
		return model.Separate
	}
	return syncMemory(c, parts)
}

// syncMemory returns the lifetime of the values of all vertices in synchronous training. If training
// has mini-batches, only evaluations and measurements use these values.
func syncMemory(c config.Config, parts int) model.Memory {
	if c.Batches() > 0 && c.MeasureStaleness == 0 {
		return model.Forward
	}
	if c.Batches() > 0 {
		return model.InStep // with the rows of all layers after a forward pass
	}
	return passMemory(c) | chained(c, parts)
}

// chained returns InChain, with the form that suits the run, if the memory of a run is limited and the
// run supports it.
func chained(c config.Config, parts int) model.Memory {
	switch {
	case !c.LimitsMemory() || c.Mode != "pipe" || c.Tensor != "cpu" || c.MeasureStaleness > 0 || c.Recompute:
		return 0
	case parts > 1:
		return model.InChain | model.Exchanged
	case c.Gather == "bf16":
		return model.InChain | model.Narrow
	}
	return model.InChain
}

// passMemory returns the lifetime of values in the forward and the backward pass.
func passMemory(c config.Config) model.Memory {
	if c.Recompute {
		return model.Recompute
	}
	return model.InStep
}

// trainer makes a trainer. reduction may be nil. Collective over the graph ranks.
func (e *Engine) trainer(source params.Source, reduction *halo.Reduction, m model.Memory) (*trainer, error) {
	n, ops := e.Network.NumWeights(), e.workers.newOps()
	t := &trainer{engine: e, cfg: e.Config, comm: e.Graph, net: e.Network}
	t.steps, t.reporter, t.source, t.saver, t.servers = fullGraph{t}, e.Reporter, source, noSaver{}, params.NoServers{}
	t.flat, t.grad = mapped.Make[float32](e.Arena, n), mapped.Make[float32](e.Arena, n)
	t.sharedWeights, t.deviceGrad = kernels.PlaceMat(ops, e.Arena, n, 1, t.flat), kernels.PlaceMat(ops, e.Arena, n, 1, t.grad)
	var err error
	if e.halo, err = e.newLocalHalo(e.Arena); err != nil {
		return nil, err
	}
	store := e.store(e.network(), m, e.Arena)
	if err := e.cacheInput(store, reduction, e.Arena); err != nil {
		return nil, err
	}
	if err := e.fetchGhostFeatures(store.Network, e.Arena); err != nil {
		return nil, err
	}
	intervals := e.newIntervals(store, t.sharedWeights, e.Arena)
	if m.Lifetime() != model.Forward {
		e.skipUnlabelled(store.Network, intervals)
	}
	t.lockstep = e.lockstep(store, intervals)
	t.files = e.fileReader(e.Files)
	e.reserveBackend(store, t.intervals, e.Arena)
	t.endsInLoss, t.update, t.sums = e.Task != graph.Links, t.sumLayer, make([]float64, findingsSize+requestKinds)
	t.pairing, t.pairs = &pairing{scorer: dotProduct{}}, e.HeldOut != nil
	if t.pairs {
		if t.pairing, err = e.preparePairs(e.Arena); err != nil {
			return nil, err
		}
	}
	at := e.Network.HeadRange()
	t.pairing.weights = t.flat[at.Lo:at.Hi]
	t.totals = newAllSums(store.Network, e.Peers, e.workers.newOps, t.flat, t.grad)
	t.layers = append(t.layers, params.Layers(e.Network)...)
	t.connectRoutes(e, reduction, e.Arena)
	t.delay, t.after = newDelay(e.Config, e.Peers.Rank()), e.corrections(t)
	return t, nil
}

// addHooks adds the parts of an epoch in the synchronous modes, with hooks that tune the exchange. An
// epoch's line has the loss and accuracy of the weights that the epoch starts from. After the last epoch
// the final weights are evaluated once more. An epoch that has diverged has no line; the next one begins
// but does not train.
func (t *trainer) addHooks(tuning hooks) {
	corrections := t.after
	t.before = hooks{t.endDiverged, t.save}
	if t.replaceable() {
		t.before = append(t.before, t.storeView)
	}
	if t.routes.alternate() {
		t.before = append(t.before, t.chooseRoute)
	}
	t.before = append(t.before, t.evaluateDue)
	if t.stale.measures() && t.steps.isFull() {
		t.before = append(t.before, t.measure)
	}
	t.after = append(append(hooks{t.sumLoss}, corrections...), t.skipDiverged)
	if t.cfg.TrainsPredictor() {
		t.after = append(t.after, t.trainPredictor)
	}
	t.after = append(append(t.after, t.reportEpoch), tuning...)
	if t.routes.alternate() {
		t.after = append(t.after, t.observeEpoch)
	}
}

// endDiverged ends a run whose weights have diverged.
func (t *trainer) endDiverged(e *epochState) (leave bool, err error) {
	epoch := e.line.Epoch
	if t.history.StoppedBy == stopping.ByDivergence || t.savesBefore(epoch) && !t.history.Sound(epoch, t.flat) {
		return true, t.servers.Leave()
	}
	return false, nil
}

// skipDiverged leaves out the line of an epoch that has diverged.
func (t *trainer) skipDiverged(e *epochState) (leave bool, err error) {
	return t.history.Diverges(&e.line, t.flat, false), nil
}

// sumLoss sums the loss of the epoch's steps over all ranks, unless the evaluation has done so.
func (t *trainer) sumLoss(e *epochState) (leave bool, err error) {
	if e.forwardDone {
		return false, nil
	}
	epoch := e.line.Epoch
	found, asked, err := t.sumResults(epoch, findings{trainLoss: e.loss}, t.ownRequests(epoch, true))
	if err == nil {
		t.accept(asked)
		e.line.Loss = found[trainLoss]
	}
	return false, err
}

// evaluateDue evaluates the weights at the start of the epoch, if an evaluation is due. It ends the
// run if the stopping rule requires that.
func (t *trainer) evaluateDue(e *epochState) (leave bool, err error) {
	closing := e.line.Epoch > t.cfg.Epochs
	if !closing && !t.cfg.Evaluates(e.line.Epoch) {
		return false, nil
	}
	if e.forwardDone, err = t.evaluate(&e.line, closing); err != nil {
		return false, err
	}
	if t.shouldEnd(e.line, closing) {
		return true, t.servers.Leave()
	}
	if t.routes.alternate() {
		t.phases.Evaluated(e.line.Loss, e.line.EvalSeconds)
		t.setRoute()
	}
	return false, nil
}

// shouldEnd reports whether the run is over before the epoch of a line is trained.
func (t *trainer) shouldEnd(line runfolder.Epoch, closing bool) bool {
	h := t.history
	if closing {
		h.Conclude(line, t.flat, stopping.GoesOn)
		return true
	}
	h.StoppedBy = h.Observe(line, t.flat)
	if h.StoppedBy == stopping.ByPatience && t.routes.alternate() && t.phases.Finish() {
		h.Wait(line.Epoch) // because epochs with ghosts follow
	}
	return h.Ended()
}

// request returns the request of the previous epoch.
func (t *trainer) request(epoch int) signals.Request {
	if epoch > t.cfg.Epochs {
		return signals.None // the run ends here
	}
	return t.pendingRequest
}

// savesBefore reports whether a checkpoint is due before an epoch. While ranks have different
// weights, the checkpoint is postponed.
func (t *trainer) savesBefore(epoch int) bool {
	atEnd := epoch > t.cfg.Epochs && t.saver.Every() != checkpoint.Interval{}
	return atEnd || t.request(epoch) > signals.None && t.cfg.Shared(epoch)
}

// save executes the request of the previous epoch: its weights and the optimiser's state are
// those that the next epoch starts from. Collective over the graph ranks, which have agreed.
func (t *trainer) save(e *epochState) (leave bool, err error) {
	epoch := e.line.Epoch
	if !t.savesBefore(epoch) {
		return false, nil
	}
	stop := t.request(epoch) == signals.Stop
	t.workers.fault.At(inject.Save, epoch-1)
	began := time.Now()
	rows, err := t.steps.packHistory()
	if err != nil {
		return false, err
	}
	parts, err := t.gatherParts()
	if err != nil {
		return false, err
	}
	if t.comm.Rank() == 0 {
		s, err := t.state(epoch - 1)
		if err != nil {
			return false, err
		}
		s.Parts, s.History = parts, rows
		t.saver.Save(s, stop)
	}
	t.servers.Saved()
	t.saver.Served(time.Since(began))
	t.pendingRequest = signals.None
	t.workers.takeSeconds()
	if stop {
		t.stopped = true
		return true, t.servers.Leave()
	}
	return false, nil
}

// gatherParts gathers the parts' own states on rank 0. Collective over the graph ranks.
func (t *trainer) gatherParts() ([][]byte, error) {
	if !t.hasLastingState() {
		return nil, nil
	}
	own, err := t.steps.pack()
	if err != nil {
		return nil, err
	}
	return world.Gather(t.comm, 0, own)
}

// comms returns all communicators of the rank.
func (e *Engine) comms() []world.Comm {
	list := []world.Comm{e.World, e.Peers}
	if e.pipelined() {
		list = append(list, e.Graph, e.Stages)
	}
	return list
}

// evaluates reports whether the rank takes part in evaluations: with pipelines, the first stages do.
func (e *Engine) evaluates() bool { return !e.pipelined() || e.Stages.Rank() == 0 }

// pipelined reports whether the rank is a stage of a pipeline of layers.
func (e *Engine) pipelined() bool { return e.Config.Pipeline != "" }

// timed counts the time of a collective step, which is no worker's task.
func (t *trainer) timed(stage schedule.Stage, epoch int, step func() error) error {
	task := schedule.Task{Stage: stage, Epoch: epoch, Layer: trace.None, Interval: schedule.Whole}
	t.workers.begin(0, task)
	defer t.workers.end(0, task)
	return step()
}
