package schedule

// ID identifies a node of a Graph.
type ID int32

// Graph has the tasks of a pass and their dependencies. It is built once.
type Graph struct {
	nodes []node
}

// node is a task, an event, or a join of several nodes.
type node struct {
	task  Task
	kind  nodeKind
	needs int32 // nodes that must be done before
	after []int32
}

type nodeKind uint8

const (
	work nodeKind = iota
	event
	joint
)

// Task adds a task that may run when all nodes of after are done.
func (g *Graph) Task(t Task, after ...ID) ID { return g.add(t, work, after) }

// Event adds an event that other ranks trigger after all nodes of after are done. A Walk returns it
// from Awaited until Done reports the event.
func (g *Graph) Event(t Task, after ...ID) ID { return g.add(t, event, after) }

// Join adds a node that is done when all nodes of after are. With it, many tasks can depend on many
// others without one edge for each pair.
func (g *Graph) Join(after ...ID) ID { return g.add(Task{}, joint, after) }

func (g *Graph) add(t Task, kind nodeKind, after []ID) ID {
	id := int32(len(g.nodes))
	t.Ref = id
	g.nodes = append(g.nodes, node{task: t, kind: kind, needs: int32(len(after))})
	for _, a := range after {
		if a < 0 || int32(a) >= id {
			panic("schedule: a task depends on a later task")
		}
		g.nodes[a].after = append(g.nodes[a].after, id)
	}
	return ID(id)
}

// Tasks returns the tasks of the graph in the order in which they were added, without
// epochs.
func (g *Graph) Tasks() (list []Task) {
	for i := range g.nodes {
		if g.nodes[i].kind == work {
			list = append(list, g.nodes[i].task)
		}
	}
	return list
}

// Walk visits the tasks of a Graph. The task that became ready last comes first, so that a worker
// continues with the interval in its cache. Of tasks that become ready together, the one that was
// added first comes first.
type Walk struct {
	graph   *Graph
	epoch   int
	left    []int32 // of the nodes that each node waits for
	ready   []int32 // the last one is next
	awaited []int32 // events that may happen
	open    int     // tasks and events that are not done
}

// NewWalk makes a walk through g, which must not change afterwards. Start begins the walk.
func NewWalk(g *Graph) *Walk { return &Walk{graph: g, left: make([]int32, len(g.nodes))} }

// Start begins a walk from the first tasks. Its tasks have the given epoch.
func (w *Walk) Start(epoch int) {
	w.epoch, w.open = epoch, len(w.graph.nodes)
	w.ready, w.awaited = w.ready[:0], w.awaited[:0]
	for i := range w.graph.nodes {
		w.left[i] = w.graph.nodes[i].needs
	}
	for i := len(w.left) - 1; i >= 0; i-- {
		if w.graph.nodes[i].needs == 0 {
			w.release(int32(i))
		}
	}
}

// release makes a node ready that waits for no other node.
func (w *Walk) release(i int32) {
	switch w.graph.nodes[i].kind {
	case work:
		w.ready = append(w.ready, i)
	case event:
		w.awaited = append(w.awaited, i)
	case joint:
		w.finish(i)
	}
}

func (w *Walk) finish(i int32) {
	w.open--
	after := w.graph.nodes[i].after
	for k := len(after) - 1; k >= 0; k-- {
		if w.left[after[k]]--; w.left[after[k]] == 0 {
			w.release(after[k])
		}
	}
}

// Next returns a task that may run, once.
func (w *Walk) Next() (Task, bool) {
	n := len(w.ready)
	if n == 0 {
		return Task{}, false
	}
	t := w.graph.nodes[w.ready[n-1]].task
	w.ready = w.ready[:n-1]
	t.Epoch = w.epoch
	return t, true
}

// Waiting returns the number of ready tasks that Next has not returned.
func (w *Walk) Waiting() int { return len(w.ready) }

// Done records that a task has run, or that an event has happened.
func (w *Walk) Done(t Task) {
	for k, i := range w.awaited {
		if i == t.Ref {
			w.awaited = append(w.awaited[:k], w.awaited[k+1:]...)
			break
		}
	}
	w.finish(t.Ref)
}

// Awaited returns an event that may happen now.
func (w *Walk) Awaited() (Task, bool) {
	if len(w.awaited) == 0 {
		return Task{}, false
	}
	t := w.graph.nodes[w.awaited[0]].task
	t.Epoch = w.epoch
	return t, true
}

// Finished reports whether all nodes are done.
func (w *Walk) Finished() bool { return w.open == 0 }
