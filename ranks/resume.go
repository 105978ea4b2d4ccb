package ranks

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/inventory"
	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/ranks/checkpoint"
	"siafu/ranks/inject"
	"siafu/ranks/predictions"
	"siafu/ranks/runfolder"
	"siafu/ranks/stopping"
	"siafu/ranks/trace"
	"siafu/ranks/world"
)

// resumed is where a run goes on from; the zero value is the beginning.
type resumed struct {
	resumption
	weights []float32
	slots   [][]float32
	best    []float32 // nil before the first evaluation
	rows    []byte    // on rank 0: of the history of representations, nil without
}

// resumption is what rank 0 tells the others of where the run goes on.
type resumption struct {
	Epoch    int // the last one trained
	Switched bool
	HasBest  bool
	BestLine runfolder.Epoch
	Last     runfolder.Epoch
	Record   *checkpoint.Record
	Slots    int
	Parts    int // that know something alone, 0: none
}

// sameLaunch tells whether an earlier attempt of this very launch has made or last
// written the run folder with this marker. The run then goes on there, whatever
// it was told about folders that it finds: --force has been obeyed.
func sameLaunch(m *inventory.Marker) bool {
	launch := os.Getenv(runfolder.LaunchVariable)
	return m != nil && launch != "" && m.Launch == launch
}

// ended tells whether the run that is to go on has come to its end, and needs
// no rank at all; err is that of one which has diverged. Where dataset or
// settings are others, admit says so.
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
	if s.StoppedBy == stopping.ByDivergence {
		err = fault.New(fault.Diverged, "resume", c.Out, "this run has diverged in epoch %d", s.Epochs).
			Then("begin another one with a lower --lr")
	}
	return true, err
}

// identity is what a run is of: its dataset and the settings that its numbers
// depend on.
func identity(c *Config, meta *graph.Meta) map[string]string {
	of := meta.Identity()
	maps.Copy(of, settings(c, c.NetworkOf(meta)))
	return of
}

// lockWait is how long a run that goes on waits for another one that writes its
// folder and may be about to end.
const lockWait = 10 * time.Second

// opening is how rank 0 begins to write the run folder, when everything has
// been checked.
type opening struct {
	inPlace bool   // the run goes on in the folder of its checkpoint
	from    string // the checkpoint; empty: there is none
	epoch   int    // of the checkpoint
	metrics []byte // lines of metrics.jsonl up to it
	lines   []runfolder.Epoch
	seconds float64             // that the run has taken up to it
	spent   runfolder.Functions // likewise, on invocations
}

// admit claims the run folder, reads the checkpoint that the run goes on from,
// and checks all that rank 0 can check by itself. It changes nothing. On rank 0.
func (r *run) admit(out IO) error {
	c := r.cfg
	claim := runfolder.Claim{
		Out: c.Out, Name: r.meta.Name, Launch: os.Getenv(runfolder.LaunchVariable),
		Others: slices.Concat(checkpoint.Contents(), predictions.Folders(), inventory.Folder{{Name: inventory.Pattern(`.*`), Proof: trace.IsTimeline}}),
	}
	if c.Resume != "" {
		claim.Wait = lockWait
	}
	folder, err := claim.Take()
	if err != nil {
		return err
	}
	r.reporter = newReporter(c, folder, r.kind, out)
	if text := folder.Warning(); text != "" {
		r.reporter.warn("%s", text)
	}
	if r.state, err = r.find(folder); err != nil {
		return err
	}
	if r.state == nil {
		return r.vetBeginning(folder)
	}
	return r.vetResumption(folder)
}

// find reads the checkpoint that the run goes on from, nil for none.
func (r *run) find(folder *runfolder.Folder) (*checkpoint.State, error) {
	c, m := r.cfg, folder.Marker()
	if m != nil && (c.Resume == "auto" || sameLaunch(m)) {
		state, problems, err := checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
		r.passOver(problems)
		if err == nil && state == nil && len(problems) > 0 {
			err = fault.New(fault.Data, "resume", c.Out, "none of its %d checkpoints is whole", len(problems)).
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
	r.passOver(problems)
	return state, err
}

func (r *run) passOver(problems []checkpoint.Problem) {
	for _, p := range problems {
		r.reporter.warn("the checkpoint %s is passed over: %v", p.Path, p.Err)
	}
}

// vetBeginning checks what a run needs that begins with its first epoch.
func (r *run) vetBeginning(folder *runfolder.Folder) error {
	if err := r.vetFolder(folder); err != nil || r.cfg.Init == "" {
		return err
	}
	_, md, err := readWeights(r.cfg.Init, r.net)
	if err != nil {
		return err
	}
	return r.inputsSuit("init", r.cfg.Init, md)
}

// vetFolder fails where the run folder holds another run that is to stay, or
// something that is not siafu's. One that was to go on and has saved nothing
// begins again.
func (r *run) vetFolder(folder *runfolder.Folder) error {
	c, m := r.cfg, folder.Marker()
	if m == nil {
		return nil
	}
	if !c.Force && !sameLaunch(m) && (c.Resume != "auto" || folder.HasEnded()) {
		return fault.New(fault.Usage, "run folder", c.Out, "it exists already").Then("choose another --out, or replace it with --force")
	}
	return folder.Replaceable()
}

// vetResumption checks that the run can go on from the state that was read: it
// is of the same dataset, settings and network, its metrics are there, and
// nothing foreign is in the way.
func (r *run) vetResumption(folder *runfolder.Folder) error {
	s := r.state
	if err := r.inputsSuit("resume", s.Path, s.Metadata); err != nil {
		return err
	}
	if err := s.Agree(r.meta.Identity(), settings(&r.cfg, r.net)); err != nil {
		return err
	}
	o, err := kernels.NewOptimizer(r.cfg.OptimizerConfig())
	if err != nil {
		return err
	}
	if err := s.Fits(tensors(r.net, nil), checkpoint.SlotNames(r.cfg.Optimizer)[:o.StateSlots()]); err != nil {
		return err
	}
	source := filepath.Dir(filepath.Dir(s.Path))
	r.opening = opening{from: s.Path, epoch: s.Epoch, seconds: s.Seconds, spent: s.Spent, inPlace: folder.Marker() != nil && sameFolder(source, folder.Dir())}
	if err := r.opening.read(r.reporter, s.Metrics, filepath.Join(source, runfolder.Metrics)); err != nil {
		return err
	}
	if r.opening.inPlace {
		return checkpoint.Rewindable(filepath.Join(source, checkpoint.Dir), s.Epoch)
	}
	return r.vetFolder(folder)
}

// read takes up what the epochs before have left in metrics.jsonl.
func (o *opening) read(v *reporter, m checkpoint.Metrics, path string) error {
	var err error
	o.metrics, err = m.Read(path)
	if fault.KindOf(err) == fault.Missing {
		v.warn("%v: metrics begin with epoch %d", err, o.epoch+1)
		return nil
	}
	if err == nil {
		o.lines, err = runfolder.ParseEpochs(path, o.metrics)
	}
	return err
}

func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// begin begins to write the run folder. Everything has been checked before. On
// rank 0; others do nothing.
func (r *run) begin() error {
	v, o := r.reporter, r.opening
	if v == nil || v.begun {
		return nil
	}
	v.begun = true
	if err := v.takeUp(o); err != nil {
		return err
	}
	of := identity(&r.cfg, r.meta)
	var err error
	if o.inPlace {
		if _, err = checkpoint.Rewind(filepath.Join(v.folder.Dir(), checkpoint.Dir), o.epoch); err == nil {
			err = v.folder.Continue(of, int64(len(o.metrics)))
		}
	} else {
		err = v.folder.Begin(of, o.metrics)
	}
	if err != nil {
		return err
	}
	if err := v.folder.WriteConfig(r.cfg); err != nil {
		return err
	}
	if r.cfg.TensorBoard {
		if err := v.folder.OpenEvents(o.lines); err != nil {
			return err
		}
	}
	if r.cfg.Trace != "" {
		if err := trace.Prepare(r.cfg.Trace); err != nil {
			return err
		}
	}
	if o.from != "" {
		v.log("resume epoch=%d from=%s", o.epoch, o.from)
	}
	r.opening = opening{}
	r.fault.At(inject.Opened, 0)
	return nil
}

// takeUp counts what the run has done before a checkpoint, and fails where its budget
// does not reach any farther.
func (p *reporter) takeUp(o opening) error {
	for _, e := range o.lines {
		p.count(e)
	}
	p.before, p.account.before = o.seconds, o.spent
	p.budget.resume(o.lines)
	return p.budget.begin(p.cost())
}

// takeUp gives everybody the state of the run that goes on, and its weights.
// Collective over the world.
func (r *run) takeUp(weights []float32) error {
	var blob []byte
	var err error
	if r.state != nil {
		blob, err = r.offer()
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil || len(blob) == 0 {
		return err
	}
	m := &r.from.resumption
	if err := json.Unmarshal(blob, m); err != nil {
		return err
	}
	if r.rank != 0 {
		room := func() []float32 { return make([]float32, len(weights)) }
		r.from.weights = room()
		for range m.Slots {
			r.from.slots = append(r.from.slots, room())
		}
		if m.HasBest {
			r.from.best = room()
		}
	}
	for _, part := range append(slices.Clone(r.from.slots), r.from.weights, r.from.best) {
		if part == nil {
			continue
		}
		if err := r.world.Bcast(mapped.Bytes(part), 0); err != nil {
			return err
		}
	}
	copy(weights, r.from.weights)
	err = r.takeUpPart()
	r.state = nil
	return err
}

// takeUpPart gives each part what it alone knew, where the run had the same number of
// them. Collective over the world.
func (r *run) takeUpPart() error {
	if r.from.Parts != r.view.Parts {
		if r.from.Parts > 0 {
			r.reporter.log("refresh: rows of ghosts begin anew, since those of the checkpoint are of %d parts, not of %d", r.from.Parts, r.view.Parts)
		}
		return nil
	}
	var blocks [][]byte
	if r.rank == 0 {
		blocks = make([][]byte, r.world.Size())
		copy(blocks, r.state.Parts)
	}
	own, err := world.Scatter(r.world, 0, blocks)
	if !r.isServer() {
		r.own = own
	}
	return err
}

// offer takes the state apart on rank 0.
func (r *run) offer() ([]byte, error) {
	s := r.state
	r.from.rows = s.History
	m := resumption{Epoch: s.Epoch, Switched: s.Switched, Slots: len(s.Slots), Parts: len(s.Parts)}
	r.from.weights = r.flat(s.Weights)
	for _, slot := range s.Slots {
		r.from.slots = append(r.from.slots, r.flat(slot.Tensors))
	}
	if s.Best != nil {
		m.HasBest, m.BestLine, r.from.best = true, s.Best.Line, r.flat(s.Best.Weights)
		m.Record = s.Record
	}
	if s.Last != nil {
		m.Last = *s.Last
	}
	return json.Marshal(m)
}
