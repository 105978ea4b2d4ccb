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
func (s *saver) Save(state checkpoint.State, stop bool) {
	written, err := s.write(state)
	if v := s.run.reporter; err == nil {
		v.log("checkpoint epoch=%d bytes=%d seconds=%.3f path=%s", state.Epoch, written.Bytes, written.Took.Seconds(), written.Path)
		v.saving += written.Took
		v.saved += written.Bytes
	}
	switch {
	case stop && err == nil:
		s.run.stop = s.stopped(state.Epoch, written.Path)
	case stop:
		s.run.stop = err
	case err != nil:
		s.run.reporter.warn("failed to write the checkpoint of epoch %d; continuing without it: %v", state.Epoch, err)
	}
}

// stopped returns the error of a stopped run that can be resumed.
func (s *saver) stopped(epoch int, path string) error {
	v := s.run.reporter
	why, more := "a signal to another rank", ""
	if s.run.views.stops() {
		why = "fewer ranks are left than --survive least=N requires"
	} else if sig, _ := s.watcher.Stopping(); sig != nil {
		why = sig.String()
	} else if v.budget.over {
		why = fmt.Sprintf("cost so far $%.6f; another epoch and the end of the run may exceed --budget %g", v.cost(), v.budget.usd)
		more = " and a larger --budget"
	}
	return fault.New(fault.Stopped, "train", path, "stopped after epoch %d (%s); this checkpoint has that epoch", epoch, why).
		Then("continue with --out %s --resume auto%s", v.folder.Dir(), more)
}

func (s *saver) write(state checkpoint.State) (checkpoint.Written, error) {
	r, dir := s.run, s.run.reporter.folder.Dir()
	if err := r.reporter.folder.Present(); err != nil {
		return checkpoint.Written{}, err
	}
	metrics, err := checkpoint.MarkMetrics(filepath.Join(dir, runfolder.Metrics))
	if err != nil {
		return checkpoint.Written{}, err
	}
	state.Metrics = metrics
	r.describe(&state)
	at := func(step string) { r.fault.At(inject.Save+" "+step, state.Epoch) }
	written, err := checkpoint.Save(filepath.Join(dir, checkpoint.Dir), state, at)
	if err != nil {
		return written, err
	}
	_, err = checkpoint.Prune(filepath.Join(dir, checkpoint.Dir), s.keep, state.Epoch)
	return written, err
}

// describe adds to a state what the engine does not know: the identity and the cost of the run.
func (r *joined) describe(s *checkpoint.State) {
	s.Version, s.Seed, s.Metadata = Version, r.cfg.Seed, r.networkMetadata()
	s.Data, s.Settings = r.meta.Identity(), r.cfg.Identity(r.net)
	s.Cached, s.Ghosts, s.Kernel = r.net.CacheInput, r.cfg.RecomputeGhosts, r.cfg.KernelVariant()
	s.Seconds, s.Spent = r.reporter.seconds(), r.reporter.account.invocations()
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
