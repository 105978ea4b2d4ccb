package ranks

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/mapped"
	"siafu/internal/safetensors"
	"siafu/kernels"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/predictions"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// sameLaunch reports whether an earlier attempt of this launch has made or last written the
// run folder with this marker. The run then resumes there, regardless of the options about
// existing folders: --force has already been applied.
func sameLaunch(m *inventory.Marker) bool {
	launch := os.Getenv(runfolder.LaunchVariable)
	return m != nil && launch != "" && m.Launch == launch
}

// ended reports whether the run to resume has already ended, and needs no ranks. err is set if
// it has diverged, or its model is missing or damaged. admit reports a different dataset or settings.
func ended(c *Config, data string) (yes bool, err error) {
	if c.Out == "" {
		return false, nil
	}
	m, s := runfolder.ReadMarker(c.Out), runfolder.Ended(c.Out)
	if m == nil || s == nil || c.Resume != "auto" && !sameLaunch(m) || s.StoppedBy == stopping.ByEpochs && s.Epochs < c.Epochs {
		return false, nil
	}
	meta, err := graph.ReadMeta(data)
	if err != nil || !checkpoint.Settings(m.Of).Equal(identity(c, meta)) {
		return false, nil
	}
	if s.StoppedBy != stopping.ByDivergence {
		if _, _, err = safetensors.Read(modelFile(c.Out)); err != nil {
			f := (*fault.Error)(nil)
			errors.As(err, &f) // Read returns faults
			err = f.Then("restore this file of the ended run, or remove summary.json beside it: the run then " +
				"resumes from its last checkpoint")
		}
	} else {
		err = fault.New(fault.Diverged, "resume", c.Out, "this run diverged in epoch %d", s.Epochs).
			Then("start a new run with a lower --lr")
	}
	return true, err
}

// identity returns a run's dataset and the settings that its numbers depend on.
func identity(c *Config, meta *graph.Meta) map[string]string {
	of := meta.Identity()
	maps.Copy(of, c.Identity(c.NetworkOf(meta)))
	return of
}

// lockWait is the time that a resumed run waits for another process that writes its folder, because
// that process may be about to end.
const lockWait = 10 * time.Second

// takeoverWait is the time that a rank waits for the lock of a lost one. A server of NFS 4 releases the
// locks of a lost host after 90 seconds.
const takeoverWait = 100 * time.Second

// beginning has the data with which rank 0 begins to write the run folder, after all checks.
type beginning struct {
	inPlace bool            // the run continues in the folder of its checkpoint
	metrics runfolder.Lines // up to the checkpoint
}

// admit claims the run folder, reads the checkpoint to resume from, and makes all checks
// that rank 0 can make alone. It changes nothing. On rank 0.
func (r *opener) admit() error {
	c := r.cfg
	claim := runfolder.Claim{
		Out: c.Out, Name: r.meta.Name, Launch: os.Getenv(runfolder.LaunchVariable),
		Others: slices.Concat(checkpoint.Contents(), predictions.Folders(),
			inventory.Folder{{Name: inventory.Pattern(`.*`), Proof: trace.IsTimeline}}),
	}
	switch {
	case r.view.Number > 0:
		claim.Wait = takeoverWait
	case c.Resume != "":
		claim.Wait = lockWait
	}
	folder, err := claim.Take()
	if err != nil {
		return err
	}
	r.reporter = newReporter(c, folder, r.kind, r.out)
	if text := folder.Warning(); text != "" {
		r.reporter.warn("%s", text)
	}
	if r.views.newest(0) >= 0 {
		return nil // the run continues from this state
	}
	if r.state, err = r.findCheckpoint(folder); err != nil {
		return err
	}
	if r.state == nil {
		return r.vetBeginning(folder)
	}
	return r.vetResumption(folder)
}

// continues reports whether an earlier view or an earlier attempt of this launch has written the run
// folder with this marker.
func (r *opened) continues(m *inventory.Marker) bool { return r.view.Number > 0 || sameLaunch(m) }

// findCheckpoint reads the checkpoint to resume from, nil for none.
func (r *opener) findCheckpoint(folder *runfolder.Folder) (*checkpoint.State, error) {
	c, m := r.cfg, folder.Marker()
	if m != nil && (c.Resume == "auto" || r.continues(m)) {
		state, problems, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
		r.warnSkipped(problems)
		if err == nil && state == nil && len(problems) > 0 {
			err = fault.New(fault.Data, "resume", c.Out, "none of its %d checkpoints is readable", len(problems)).
				Then("start again in another --out, or with --force")
		}
		if state != nil || err != nil {
			return state, err
		}
	}
	if c.Resume == "" || c.Resume == "auto" {
		return nil, nil
	}
	state, problems, err := checkpoint.Open(c.Resume)
	r.warnSkipped(problems)
	return state, err
}

func (r *opener) warnSkipped(problems []checkpoint.Problem) {
	for _, p := range problems {
		r.reporter.warn("skipping checkpoint %s: %v", p.Path, p.Err)
	}
}

// vetBeginning checks the requirements of a new run.
func (r *opener) vetBeginning(folder *runfolder.Folder) error {
	if err := r.vetFolder(folder); err != nil || r.cfg.Init == "" {
		return err
	}
	_, md, err := readWeights(r.cfg.Init, r.net, r.meta)
	if err != nil {
		return err
	}
	return r.inputsSuit("init", r.cfg.Init, md)
}

// vetFolder fails if the run folder contains another run that must be kept, or foreign
// files. A run that has saved nothing starts again.
func (r *opener) vetFolder(folder *runfolder.Folder) error {
	c, m := r.cfg, folder.Marker()
	if m == nil {
		return nil
	}
	if !c.Force && !r.continues(m) && (c.Resume != "auto" || folder.HasEnded()) {
		return fault.New(fault.Usage, "run folder", c.Out, "it exists already").Then("choose another --out, or replace it with --force")
	}
	return folder.Replaceable()
}

// vetResumption checks that the run can resume from the loaded state: the dataset, the
// settings and the network are the same, its metrics exist, and no foreign files are in the
// way.
func (r *opener) vetResumption(folder *runfolder.Folder) error {
	s := r.state
	if err := r.inputsSuit("resume", s.Path, s.Metadata); err != nil {
		return err
	}
	if err := s.Agree(r.meta.Identity(), r.cfg.Identity(r.net)); err != nil {
		return err
	}
	o, err := kernels.NewOptimizer(r.cfg.OptimizerConfig())
	if err != nil {
		return err
	}
	if err := s.Fits(engine.Tensors(r.net, nil), checkpoint.SlotNames(r.cfg.Optimizer)[:o.StateSlots()]); err != nil {
		return err
	}
	source := filepath.Dir(filepath.Dir(s.Path))
	r.beginning.inPlace = folder.Marker() != nil && sameFolder(source, folder.Dir())
	path := filepath.Join(source, runfolder.Metrics)
	switch err := s.Metrics.Verify(path); {
	case err == nil:
		r.beginning.metrics = runfolder.Lines{Path: path, Bytes: s.Metrics.Bytes}
	case fault.KindOf(err) == fault.Missing:
		r.reporter.warn("%v: metrics start with epoch %d", err, s.Epoch+1)
	default:
		return err
	}
	if r.beginning.inPlace {
		return checkpoint.Rewindable(filepath.Join(source, checkpoint.Dir), s.Epoch)
	}
	return r.vetFolder(folder)
}

func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// beginFolder starts to write the run folder, after all checks. On rank 0; others do nothing.
func (r *begun) beginFolder() error {
	v, o, from := r.reporter, r.beginning, r.from
	if v == nil || v.begun {
		return nil
	}
	v.begun = true
	if err := v.restore(o.metrics, &from); err != nil {
		return err
	}
	of := identity(&r.cfg, r.meta)
	var err error
	if o.inPlace {
		if _, err = checkpoint.Rewind(filepath.Join(v.folder.Dir(), checkpoint.Dir), from.Epoch); err == nil {
			err = v.folder.Continue(of, o.metrics.Bytes)
		}
	} else {
		err = v.folder.Begin(of, o.metrics)
	}
	if err == nil && r.view.Number == 0 {
		err = v.folder.ForgetLeaving()
	}
	if err != nil {
		return err
	}
	if err := v.folder.WriteConfig(r.cfg); err != nil {
		return err
	}
	if r.cfg.TensorBoard {
		if err := v.folder.OpenEvents(o.metrics); err != nil {
			return err
		}
	}
	if r.cfg.Trace != "" {
		if err := trace.Prepare(r.cfg.Trace); err != nil {
			return err
		}
	}
	if from.Path != "" {
		v.log("resume epoch=%d from=%s", from.Epoch, from.Path)
		if v.text && !v.cfg.Quiet {
			v.print("resumed", "after epoch %d, from %s", from.Epoch, from.Path)
		}
	}
	r.beginning = beginning{}
	r.fault.At(inject.Opened, 0)
	return nil
}

// restore adds the totals of the run before the checkpoint, and fails if the budget is used
// up.
func (p *reporter) restore(lines runfolder.Lines, from *checkpoint.State) error {
	err := lines.Each(func(e *runfolder.Epoch) {
		p.count(*e)
		p.budget.resume(e)
	})
	if err != nil {
		return err
	}
	p.before, p.account.before = from.Seconds, from.Spent
	return p.budget.begin(p.cost())
}

// restore gives all ranks the state of the resumed run, and its weights. Collective over the
// world.
func (r *begun) restore() error {
	var text []byte
	var err error
	if r.state != nil {
		r.from = *r.state
		text, err = r.from.EncodeHead()
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	if text, err = world.BcastBlob(r.world, text, 0); err != nil || len(text) == 0 {
		return err
	}
	if r.rank != 0 {
		if r.from, err = checkpoint.DecodeHead(text); err != nil {
			return err
		}
		r.from.Allocate(func() []safetensors.Tensor { return engine.Tensors(r.net, make([]float32, len(r.weights))) })
	}
	for _, t := range r.from.Tensors() {
		if err := r.world.Bcast(mapped.Bytes(t.Data), 0); err != nil {
			return err
		}
	}
	fillWeights(r.net, r.from.Weights, r.weights)
	r.from.Weights = nil
	if err := r.restorePart(); err != nil {
		return err // the next view restores the state again
	}
	r.state = nil
	return nil
}

// restorePart restores the state that only each part has, if the run had the same number of
// parts. Collective over the world.
func (r *begun) restorePart() error {
	var blocks [][]byte
	if r.rank == 0 {
		blocks = make([][]byte, r.world.Size())
		switch n := len(r.from.Parts); n {
		case r.view.Parts:
			copy(blocks, r.from.Parts)
		case 0:
		default:
			r.reporter.log("refresh: reset the cached ghost rows: the checkpoint has %d parts, this run has %d", n, r.view.Parts)
		}
	}
	own, err := world.Scatter(r.world, 0, blocks)
	if !r.isServer() && len(own) > 0 {
		r.partState = own
	}
	r.from.Parts = nil
	return err
}
