package protocol

import (
	"math/rand/v2"
	"slices"

	"siafu/internal/wire"
)

// cluster is a world whose messages arrive in random order, except between the same two ranks.
// Graph ranks also process their intervals in random order, some more often than others.
type cluster struct {
	t       testingT
	setting Setting
	layers  []Range
	epochs  int
	rand    *rand.Rand
	servers []*Server
	workers []*worker
	links   map[[2]int][]Message
	choose  func(rank, interval, epoch int) int // of the server; nil: the chooser's choice
	grad    func(interval, epoch, layer int, weights []float32) []float32
	taken   func(m Message) // sees the weights of each forward pass
	sums    int             // messages among servers
}

type testingT interface {
	Fatalf(string, ...any)
	Helper()
}

// worker is a graph rank.
type worker struct {
	chooser  *Chooser
	progress *Progress
	tasks    []task
	weight   int               // its relative speed
	kept     map[int][]float32 // some versions that it was sent
	newest   int               // of those
	final    []float32         // the last weights pulled
}

// task is an interval: its progress and the weights of its forward pass.
type task struct {
	epoch   int // current epoch
	next    step
	layer   int
	weights []float32
	version int
}

type step int

const (
	start step = iota
	forward
	stashed
	backward
	wait
)

func newCluster(t testingT, c Setting, layers []Range, epochs int, seed uint64, u func() Updater) *cluster {
	w := &cluster{
		t: t, setting: c, layers: layers, epochs: c.Trained + epochs,
		rand: rand.New(rand.NewPCG(seed, 7)), links: map[[2]int][]Message{},
		taken: func(Message) {},
	}
	for k := range c.Servers {
		w.servers = append(w.servers, New(c, k, layers, make([]float32, layers[len(layers)-1].Hi), u()))
	}
	for r, n := range c.Intervals {
		k := &worker{chooser: NewChooser(c, r, len(layers), layers[len(layers)-1].Hi), progress: NewProgress(c, r),
			weight: 1 + w.rand.IntN(8), kept: map[int][]float32{}}
		k.tasks = make([]task, n)
		for i := range k.tasks {
			k.tasks[i].epoch = c.Trained + 1
		}
		w.workers = append(w.workers, k)
	}
	return w
}

// send puts messages on their links. Their values are copied, because they are valid only
// until the sender's next call.
func (w *cluster) send(ms ...Message) {
	for _, m := range ms {
		if m.Values != nil {
			m.Values = append([]float32{}, m.Values...)
		}
		if m.Type == wire.Sum {
			w.sums++
		}
		k := [2]int{m.From, m.To}
		w.links[k] = append(w.links[k], m)
	}
}

// run executes all possible events. It returns false if an interval is stuck.
func (w *cluster) run() bool {
	for w.once() {
	}
	for _, k := range w.workers {
		for _, i := range k.tasks {
			if i.epoch <= w.epochs {
				return false
			}
		}
	}
	return true
}

// once executes one event: a message arrives or an interval works.
func (w *cluster) once() bool {
	var acts []func()
	for _, link := range w.open() {
		acts = append(acts, func() { w.deliver(link) })
	}
	for r, k := range w.workers {
		for i := range k.tasks {
			if w.ready(k, &k.tasks[i]) {
				for range k.weight {
					acts = append(acts, func() { w.work(r, i) })
				}
			}
		}
	}
	if len(acts) == 0 {
		return false
	}
	acts[w.rand.IntN(len(acts))]()
	return true
}

// open returns the links with messages, in a fixed order.
func (w *cluster) open() [][2]int {
	var open [][2]int
	for link, ms := range w.links {
		if len(ms) > 0 {
			open = append(open, link)
		}
	}
	slices.SortFunc(open, func(a, b [2]int) int { return (a[0]-b[0])*1000 + a[1] - b[1] })
	return open
}

func (w *cluster) ready(k *worker, i *task) bool {
	switch i.next {
	case start:
		return i.epoch <= w.epochs && k.progress.MayStart(i.epoch)
	case wait:
		return false
	}
	return true
}

func (w *cluster) deliver(link [2]int) {
	m := w.links[link][0]
	w.links[link] = w.links[link][1:]
	if k := m.To - w.setting.Graph(); k >= 0 {
		out, err := w.servers[k].Step(m)
		if err != nil {
			w.t.Fatalf("server %d: %v", k, err)
		}
		clear(m.Values) // not kept
		w.send(out...)
		return
	}
	k := w.workers[m.To]
	if m.Type == wire.Finished {
		if err := k.progress.Step(m); err != nil {
			w.t.Fatalf("rank %d: %v", m.To, err)
		}
		return
	}
	if err := k.chooser.Take(m); err != nil {
		w.t.Fatalf("rank %d: %v", m.To, err)
	}
	w.receive(k, m)
}

// receive gives an interval its weights, and compares those of its backward
// pass with those of its forward pass.
func (w *cluster) receive(k *worker, m Message) {
	if m.Values == nil {
		m.Values = k.kept[m.Version]
	}
	if m.Epoch == 0 {
		k.final = m.Values
		return
	}
	i := &k.tasks[m.Interval]
	if i.weights == nil {
		if w.rand.IntN(2) == 0 {
			k.kept[m.Version], k.newest = m.Values, max(k.newest, m.Version)
		}
		i.weights, i.version, i.next = m.Values, m.Version, forward
		w.taken(m)
		return
	}
	if m.Version != i.version || !slices.Equal(m.Values, i.weights) {
		w.t.Fatalf("rank %d, interval %d, epoch %d: forward with version %d, backward with %d",
			m.To, m.Interval, m.Epoch, i.version, m.Version)
	}
	i.next = backward
}

// work executes an interval's next step.
func (w *cluster) work(r, n int) {
	k := w.workers[r]
	i := &k.tasks[n]
	switch i.next {
	case start:
		w.withinBound(r, i.epoch)
		w.steer(r, n, i.epoch)
		w.send(k.chooser.Fetch(n, i.epoch, k.newest)...)
		i.weights, i.next = nil, wait
	case forward:
		i.layer, i.next = len(w.layers)-1, stashed
	case stashed:
		w.send(k.chooser.FetchStash(n, i.epoch, w.rand.IntN(2)*k.newest))
		i.next = wait
	case backward:
		g := w.grad(w.number(r, n), i.epoch, i.layer, i.weights)
		w.send(k.chooser.Gradient(n, i.epoch, i.layer, g))
		if i.layer--; i.layer >= 0 {
			i.next = stashed
			return
		}
		w.send(k.progress.Finish(n, i.epoch)...)
		i.epoch++
		i.next = start
	}
}

// steer makes the chooser choose what the test has decided.
func (w *cluster) steer(r, n, epoch int) {
	if w.choose == nil {
		return
	}
	h := w.workers[r].chooser
	h.decayLoads(epoch)
	for k := range h.others {
		h.others[k] = 1 << 20
	}
	h.others[w.choose(r, n, epoch)] = -1 << 20
}

// withinBound checks the bound over all intervals of all ranks.
func (w *cluster) withinBound(r, epoch int) {
	for q, k := range w.workers {
		for n, i := range k.tasks {
			if i.epoch-1 < epoch-1-w.setting.Staleness {
				w.t.Fatalf("rank %d starts epoch %d while interval %d of rank %d is in epoch %d, bound %d",
					r, epoch, n, q, i.epoch, w.setting.Staleness)
			}
		}
	}
}

// number counts intervals over all ranks.
func (w *cluster) number(r, n int) int {
	for _, c := range w.setting.Intervals[:r] {
		n += c
	}
	return n
}

// total returns the number of intervals.
func (w *cluster) total() int { return w.number(len(w.setting.Intervals), 0) }

// leave lets all graph ranks pull the last weights and leave.
func (w *cluster) leave() {
	for _, k := range w.workers {
		w.send(k.chooser.Pull(w.epochs + 1))
	}
	for w.once() {
	}
	for _, k := range w.workers {
		w.send(k.chooser.Leave()...)
	}
	for w.once() {
	}
}
