package ranks

import (
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/inject"
	"siafu/ranks/server"
	"siafu/ranks/signals"
	"siafu/ranks/world"
)

// Tags of the messages between graph ranks and servers.
const (
	tagToServer = 1
	tagToGraph  = 2
)

// weightSource is where a graph rank's weights come from and its gradients go.
type weightSource interface {
	// pull fills dst with the weights that epoch starts from.
	pull(epoch int, dst []float32) error
	// push hands over a layer's gradient, which stands until flush.
	push(epoch, layer int, grad []float32) error
	// flush ends an epoch, all layers of which have been pushed; grad is the
	// flat vector of all gradients.
	flush(epoch int, grad []float32) error
	// state is the optimiser's state that the epoch which was pulled starts
	// from, slot after slot.
	state() ([][]float32, error)
	// asked is what a process that is no graph rank has been asked for, and
	// saved says that it has been done.
	asked() signals.Request
	saved()
	// leave says that nothing more will come.
	leave() error
}

// updater steps the optimiser of a flat vector of weights, layer by layer.
type updater struct {
	optimizer kernels.Optimizer
	params    []model.Param
	state     [][]float32 // flat, one a slot
	part      [][]float32 // that of the parameter in hand
	decayAll  bool
}

// newUpdater makes an updater with the state of a run that is resumed, if this
// one is.
func (r *run) newUpdater() (*updater, error) {
	o, err := kernels.NewOptimizer(r.cfg.optimizer())
	if err != nil {
		return nil, err
	}
	u := &updater{optimizer: o, params: r.net.Params(), decayAll: r.cfg.WeightDecayOn == "all"}
	for k := range o.StateSlots() {
		slot := mapped.Make[float32](r.arena, r.net.NumWeights())
		if r.from.epoch > 0 {
			copy(slot, r.from.slots[k])
		}
		u.state = append(u.state, slot)
	}
	return u, nil
}

// State implements server.Updater.
func (u *updater) State() [][]float32 { return u.state }

// Update implements server.Updater: weights and grad are those of one layer.
func (u *updater) Update(step, layer int, weights, grad []float32) {
	first := -1
	for _, p := range u.params {
		if p.Layer != layer {
			continue
		}
		if first < 0 {
			first = p.Offset
		}
		lo, hi := p.Offset-first, p.Offset-first+p.Len()
		u.part = u.part[:0]
		for _, s := range u.state {
			u.part = append(u.part, p.Of(s))
		}
		decay := !p.Bias && (u.decayAll || layer == 0)
		u.optimizer.Step(step, weights[lo:hi], grad[lo:hi], u.part, decay)
	}
}

// replicated keeps the weights on every graph rank: gradients are summed over
// all of them in ascending order, and everybody takes the same step.
type replicated struct {
	comm    world.Comm // of the graph ranks
	weights []float32
	layers  [][]float32 // the same, layer by layer
	update  *updater
}

func newReplicated(c world.Comm, s model.Spec, weights []float32, u *updater) *replicated {
	r := &replicated{comm: c, weights: weights, update: u}
	for l := range s.Layers() {
		lo, hi := s.LayerRange(l)
		r.layers = append(r.layers, weights[lo:hi])
	}
	return r
}

func (r *replicated) pull(_ int, dst []float32) error {
	copy(dst, r.weights)
	return nil
}

func (r *replicated) push(int, int, []float32) error { return nil }

func (r *replicated) flush(epoch int, grad []float32) error {
	if err := world.SumFloat32s(r.comm, grad); err != nil {
		return err
	}
	for l, at := 0, 0; l < len(r.layers); l++ {
		end := at + len(r.layers[l])
		r.update.Update(epoch, l, r.layers[l], grad[at:end])
		at = end
	}
	return nil
}

func (r *replicated) state() ([][]float32, error) { return r.update.state, nil }

func (r *replicated) asked() signals.Request { return signals.None }

func (r *replicated) saved() {}

func (r *replicated) leave() error { return nil }

// served is a graph rank's side of a parameter server.
type served struct {
	comm    world.Comm // the whole world
	server  int
	weights int // how many
	slots   int // of the optimiser
	pending []halo.Request
	epoch   int             // of the weights that were pulled last
	ask     signals.Request // that came with them
	done    bool            // what was asked for; the server has not been told
}

func (s *served) send(m server.Message) error {
	req, err := s.comm.Isend(server.Encode(nil, m), s.server, tagToServer)
	if err != nil {
		return err
	}
	s.pending = append(s.pending, req)
	return nil
}

// settle waits until everything sent has left.
func (s *served) settle() error {
	for _, r := range s.pending {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	s.pending = s.pending[:0]
	return nil
}

func (s *served) pull(epoch int, dst []float32) error {
	w, err := s.fetch(server.Pull, server.Weights, epoch, len(dst))
	if err != nil {
		return err
	}
	copy(dst, w.Values)
	s.epoch, s.ask = epoch, signals.Request(w.Ask)
	return s.settle()
}

// fetch asks the server for something of an epoch.
func (s *served) fetch(ask, answer server.Type, epoch, values int) (server.Message, error) {
	m := server.Message{Type: ask, Epoch: epoch}
	if s.done {
		m.Ask, s.done = 1, false
	}
	if err := s.send(m); err != nil {
		return server.Message{}, err
	}
	in, err := s.comm.Recv(s.server, tagToGraph)
	if err != nil {
		return server.Message{}, err
	}
	m, err = server.Decode(in.Data, in.Source, s.comm.Rank())
	if err != nil {
		return server.Message{}, err
	}
	if m.Type != answer || m.Epoch != epoch || len(m.Values) != values {
		return server.Message{}, fault.New(fault.Runtime, "train", "", "rank %d sent %d values of epoch %d where %d of epoch %d were asked for",
			m.From, len(m.Values), m.Epoch, values, epoch)
	}
	return m, nil
}

func (s *served) state() ([][]float32, error) {
	n := s.weights
	m, err := s.fetch(server.State, server.State, s.epoch, n*s.slots)
	if err != nil {
		return nil, err
	}
	var slots [][]float32
	for k := range s.slots {
		slots = append(slots, m.Values[k*n:(k+1)*n])
	}
	return slots, s.settle()
}

func (s *served) asked() signals.Request { return s.ask }

func (s *served) saved() { s.ask, s.done = signals.None, true }

func (s *served) push(epoch, layer int, grad []float32) error {
	return s.send(server.Message{Type: server.Push, Epoch: epoch, Layer: layer, Values: grad})
}

func (s *served) flush(int, []float32) error { return nil }

func (s *served) leave() error {
	if err := s.send(server.Message{Type: server.Leave}); err != nil {
		return err
	}
	return s.settle()
}

// serve is the life of a server rank: messages in, messages out, until all its
// graph ranks have left. watcher is the process's, which may be nil.
func serve(w world.Comm, s *server.Server, watcher *signals.Watcher, f *inject.Fault) error {
	var pending []halo.Request
	for !s.Done() {
		in, err := w.Recv(world.Any, tagToServer)
		if err != nil {
			return err
		}
		m, err := server.Decode(in.Data, in.Source, w.Rank())
		if err != nil {
			return err
		}
		f.At(m.Type.String(), m.Epoch)
		out, err := s.Step(m)
		if err != nil {
			return err
		}
		if m.Ask > 0 {
			watcher.Served()
		}
		for i := range out {
			out[i].Ask = uint8(watcher.Pending())
		}
		if pending, err = dispatch(w, out, pending); err != nil {
			return err
		}
		if m.Type == server.Pull {
			f.At(inject.Eval, m.Epoch)
		}
	}
	for _, r := range pending {
		if err := r.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// dispatch sends messages and forgets those requests that have ended.
func dispatch(w world.Comm, out []server.Message, pending []halo.Request) ([]halo.Request, error) {
	kept := pending[:0]
	for _, r := range pending {
		done, err := r.Test()
		if err != nil {
			return nil, err
		}
		if !done {
			kept = append(kept, r)
		}
	}
	for _, m := range out {
		tag := tagToGraph
		if m.Type == server.Partial {
			tag = tagToServer
		}
		r, err := w.Isend(server.Encode(nil, m), m.To, tag)
		if err != nil {
			return nil, err
		}
		kept = append(kept, r)
	}
	return kept, nil
}
