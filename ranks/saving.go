package ranks

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/internal/signals"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
)

// saver decides, equally on all graph ranks, when a run saves and stops. Rank 0 saves.
type saver struct {
	run     *begun
	every   checkpoint.Interval
	keep    int
	watcher *signals.Watcher // of this process
	began   time.Time        // start of the last checkpoint, or of the run
}

func (r *begun) newSaver() *saver {
	every, _ := checkpoint.ParseInterval(r.cfg.CheckpointEvery) // checked by Validate
	return &saver{run: r, every: every, keep: r.cfg.Keep, watcher: r.watcher, began: time.Now()}
}

// Every implements engine.Saver.
func (s *saver) Every() checkpoint.Interval { return s.every }

// Pending implements engine.Saver. Only rank 0, with its clock, decides whether a
// checkpoint is due and whether the budget allows another epoch.
func (s *saver) Pending(epoch int, trained bool) signals.Request {
	ask := s.watcher.Pending()
	v := s.run.reporter
	if s.run.rank == 0 && s.every.Due(epoch, s.began) {
		ask = max(ask, signals.Checkpoint)
	}
	if v != nil && v.budget.stops(v.cost(), trained) {
		ask = signals.Stop
	}
	if s.run.views.stops() {
		ask = signals.Stop
	}
	return ask
}

// Served implements engine.Saver.
func (s *saver) Served(took time.Duration) {
	s.began = time.Now()
	s.watcher.Served()
	s.watcher.Took(took)
}

// Save implements engine.Saver. If the run continues, a failure to write the checkpoint is
// only a warning. If the run stops, the failure ends it: see run.stop.
func (s *saver) Save(snap engine.Snapshot, stop bool) {
	written, err := s.write(snap)
	if v := s.run.reporter; err == nil {
		v.log("checkpoint epoch=%d bytes=%d seconds=%.3f path=%s", snap.Epoch, written.Bytes, written.Took.Seconds(), written.Path)
		v.saving += written.Took
		v.saved += written.Bytes
	}
	switch {
	case stop && err == nil:
		s.run.stop = s.stopped(snap.Epoch, written.Path)
	case stop:
		s.run.stop = err
	case err != nil:
		s.run.reporter.warn("failed to write the checkpoint of epoch %d; continuing without it: %v", snap.Epoch, err)
	}
}

// stopped returns the error of a stopped run that can be resumed.
func (s *saver) stopped(epoch int, path string) error {
	v := s.run.reporter
	why, more := "a signal to another rank", ""
	if s.run.views.stops() {
		why = "fewer ranks are left than --least-ranks requires"
	} else if sig, _ := s.watcher.Stopping(); sig != nil {
		why = sig.String()
	} else if v.budget.over {
		why = fmt.Sprintf("cost so far $%.6f; another epoch and the end of the run may exceed --budget %g", v.cost(), v.budget.usd)
		more = " and a larger --budget"
	}
	return fault.New(fault.Stopped, "train", path, "stopped after epoch %d (%s); this checkpoint has that epoch", epoch, why).
		Then("continue with --out %s --resume auto%s", v.folder.Dir(), more)
}

func (s *saver) write(snap engine.Snapshot) (checkpoint.Written, error) {
	r, dir := s.run, s.run.reporter.folder.Dir()
	if err := r.reporter.folder.Present(); err != nil {
		return checkpoint.Written{}, err
	}
	metrics, err := checkpoint.MarkMetrics(filepath.Join(dir, runfolder.Metrics))
	if err != nil {
		return checkpoint.Written{}, err
	}
	state := r.stateOf(snap)
	state.Metrics = metrics
	at := func(step string) { r.fault.At(inject.Save+" "+step, snap.Epoch) }
	written, err := checkpoint.Save(filepath.Join(dir, checkpoint.Dir), state, at)
	if err != nil {
		return written, err
	}
	_, err = checkpoint.Prune(filepath.Join(dir, checkpoint.Dir), s.keep, snap.Epoch)
	return written, err
}

// stateOf returns the state to resume from after an epoch. Its arrays are the snapshot's.
func (r *joined) stateOf(snap engine.Snapshot) checkpoint.State {
	state := checkpoint.State{
		Version: Version, Epoch: snap.Epoch, Seed: r.cfg.Seed, Data: r.meta.Identity(), Settings: r.cfg.Identity(r.net),
		History: snap.Rows, Cached: r.net.CacheInput, Ghosts: r.cfg.RecomputeGhosts, Kernel: r.cfg.KernelVariant(), Codec: snap.Codec,
		Metadata: r.networkMetadata(),
		Switched: snap.Switched, Seconds: r.reporter.seconds(), Spent: r.reporter.account.invocations(),
		Weights: tensors(r.net, snap.Weights),
	}
	for _, own := range snap.Parts {
		state.Parts = append(state.Parts, own)
	}
	for range r.net.Layers() {
		state.Steps = append(state.Steps, r.cfg.Steps(snap.Epoch))
	}
	for k, name := range checkpoint.SlotNames(r.cfg.Optimizer)[:len(snap.Slots)] {
		state.Slots = append(state.Slots, checkpoint.Slot{Name: name, Tensors: tensors(r.net, snap.Slots[k])})
	}
	if h := snap.History; h.Best != nil {
		state.Best, state.Record = &checkpoint.Best{Line: h.BestLine, Weights: tensors(r.net, h.Best)}, h.Record.Saved()
		if last := h.Last; last.TrainAcc != nil {
			state.Last = &last
		}
	}
	return state
}

// networkMetadata returns the description of the network for weights files.
func (r *joined) networkMetadata() map[string]string {
	dims, _ := json.Marshal(r.net.Dims)
	m := map[string]string{
		"siafu": Version, "model": r.net.Kind, "dims": string(dims), "dataset": r.meta.Name,
		"heads": fmt.Sprintf("[%d,%d]", max(r.net.Heads, 1), max(r.net.OutputHeads, 1)),
	}
	if d := r.net.Design; d != (model.Design{}) {
		text, _ := json.Marshal(d)
		m["design"] = string(text)
	}
	s := r.meta.Schema()
	if r.task != graph.MultiClass {
		s.Task = r.task
	}
	if !s.IsPlain() {
		text, _ := json.Marshal(s)
		m[schemaKey] = string(text)
	}
	return m
}

// modelMetadata returns the metadata of model.safetensors. It is the same for two runs of the
// same command.
func modelMetadata(r *joined, s runfolder.Summary) map[string]string {
	m := r.networkMetadata()
	m["epoch"] = strconv.Itoa(s.BestEpoch)
	m["val_acc"] = strconv.FormatFloat(s.BestValAcc, 'g', -1, 64)
	m["test_acc"] = strconv.FormatFloat(s.TestAccAtBestVal, 'g', -1, 64)
	return m
}

// flat copies tensors into a vector of weights.
func (r *joined) flat(list []safetensors.Tensor) []float32 {
	out := make([]float32, r.net.NumWeights())
	fillWeights(r.net, list, out)
	return out
}
