package ranks

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"time"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/world"
	"siafu/ranks/world/alive"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/mpi"
	"siafu/ranks/world/parts"
)

// viewSequence is a training run on one rank, through its views. It implements
// parts.ElasticJob. If views are replaceable, each member runs as if resumed from a checkpoint
// that is in memory: after each epoch rank 0 stores the state of the run, and each part its own
// state. The run leaves a view
//
//   - after an epoch, if a rank has requested another view and all parts have agreed
//     (engine.Views),
//   - at any point, if the members of a rank were ended (parts.End), or
//   - at any point, if a rank is lost. Another rank has copies of the states of its parts.
//
// The rank with part 0 writes the run folder. If part 0 moves, its new rank opens the folder, which is
// locked as long as the process of the old one exists.
//
// Design note: a server stores nothing. Rank 0 requests its state at the beginning of an
// epoch, as for a checkpoint. So there is one state to continue from, and one way to do so.
type viewSequence struct {
	cfg         Config
	data        string
	kind        string // of world: mpi or in-process
	limits      world.Limits
	watcher     *signals.Watcher
	out         IO
	replaceable bool
	rank        int    // this rank
	host        string // of this rank, in a world of processes
	departure   *departure
	connected   func()    // called when the ranks are connected; may be nil
	admission   admission // of processes that join; nil before the ranks are connected

	files files // opened by the rank with part 0, once for all views; zero on other ranks

	// mu is locked after the mutex of package parts, which calls Pack and Unpack with its own one: no
	// function of admission is called with mu.
	mu       sync.Mutex
	members  []*member             // in the current view
	ended    bool                  // the current view ends before the run
	nextView *world.View           // proposed by this rank
	admits   bool                  // this rank has ended the view for a process that joins
	states   map[int][]storedState // by part: of the last epochs, the newest last
	lost     int                   // ranks since the start
	joined   int                   // ranks since the start
	few      bool                  // too few ranks are left: the run stops after an epoch
	folder   string                // of the run, after it is known
	clusters engine.StoredClusters // of the partitions that this process has carried
	steps    map[int]interrupted   // by part: the step in which a view has ended
}

// admission is implemented by parts.Admission.
type admission interface {
	Contacts() alive.Contacts
	Requested() bool
}

// interrupted is the state of a part in the middle of a step, and the number of the view that ended in it.
type interrupted struct {
	view int
	step engine.StepState
}

// newViewSequence makes a run. Injected faults replace a view, and lost ranks of a run that survives
// them.
func newViewSequence(c Config, data string, limits world.Limits, watcher *signals.Watcher, out IO) *viewSequence {
	return &viewSequence{
		cfg: c, data: data, limits: limits, watcher: watcher, out: out,
		replaceable: c.Survive || inject.Replaces(os.Getenv), states: map[int][]storedState{}, steps: map[int]interrupted{},
		clusters: engine.StoreClusters(),
	}
}

// run trains in the view v, and in the views that replace it. w is nil without a launcher.
func (c *viewSequence) run(w world.Comm, v world.View) error {
	c.kind = kindOf(w)
	if c.replaceable {
		if w != nil {
			c.rank, c.host = w.Rank(), w.Hosts()[w.Rank()]
		}
		silence, err := c.cfg.SilenceLimit()
		if err != nil {
			return err
		}
		var zone func(host string) string
		if w != nil && c.cfg.Survive {
			zone, err = readZones(c.cfg.Zones, w.Hosts())
			if err := agree(w, err); err != nil {
				return err
			}
			if err := c.checkTakeovers(w, v.Parts/max(v.Stages, 1)); err != nil {
				return err
			}
			c.departure = watchDeparture(&c.cfg, c.host, c.out)
			defer c.departure.close()
			mpi.Observe(max(2*silence, minStuck), func() {
				warn(c.out, "rank %d: a call of MPI does not return; this rank ends", c.rank)
				os.Exit(fault.Runtime.ExitCode())
			})
		}
		e := c.elasticity(silence, zone)
		e.Lost = func() { mapped.KeepAddresses(); mpi.Forsake(w) }
		return parts.RunViews(w, v, c, e)
	}
	defer c.Ended(v)
	return runParts(w, v, func(w world.Comm) error { return c.RunMember(w, v, nil) })
}

// elasticity returns the settings of the views. A rank is lost after the given silence.
func (c *viewSequence) elasticity(silence time.Duration, zone func(host string) string) parts.Elasticity {
	network, _ := c.cfg.ListenNetwork() // Validate has checked it
	return parts.Elasticity{
		LostAfter: silence, Network: network, Least: c.cfg.LeastRanks, Zone: zone, Vet: c.vet,
		Connected: func(a parts.Admission) {
			c.admission = a
			if c.connected != nil {
				c.connected()
			}
		},
		Log: func(format string, args ...any) { warn(c.out, format, args...) },
	}
}

// minStuck is the least time after which a call of MPI that never waits counts as stuck.
const minStuck = 4 * time.Second

// RunMember implements parts.ElasticJob.
func (c *viewSequence) RunMember(w world.Comm, v world.View, copied func(membership.State)) (err error) {
	defer mapped.Catch(&err)
	r := newMember(c.cfg, c.data, v, w, c.kind, c.out)
	r.limits, r.watcher, r.views, r.copied = limitsOf(v, c.limits), c.watcher, c, copied
	w.SetLimits(r.limits)
	c.mu.Lock()
	c.members = append(c.members, r)
	c.mu.Unlock()
	err = r.train()
	if ended := (*world.EndedError)(nil); errors.As(err, &ended) {
		c.markEnded()
	}
	return err
}

// markEnded records that the view ends before the run.
func (c *viewSequence) markEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *viewSequence) requestView(v world.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextView = &v
}

// Ended implements parts.ElasticJob.
func (c *viewSequence) Ended(v world.View) membership.Proposal {
	for _, r := range c.members {
		r.close()
	}
	leaves := c.leaves(v)
	p := membership.Proposal{View: c.nextView, Leaves: leaves, Host: leaves && c.departure.ofHost(), Admits: c.admits}
	if !c.ended {
		p = membership.Proposal{} // the run ended before the view could be replaced
	}
	c.members, c.ended, c.nextView, c.admits = nil, false, nil, false
	return p
}

// leaves reports whether this rank must leave the run, but carries members in a view.
func (c *viewSequence) leaves(v world.View) bool {
	return len(v.Carried(c.rank)) > 0 && c.departure.requested(c.folder)
}

// Continue implements parts.ElasticJob.
func (c *viewSequence) Continue(d membership.Decision) {
	moved := d.View.Rank(0) != c.rank
	c.mu.Lock()
	c.few, c.lost, c.joined = d.Few, len(d.Lost), len(d.Joined)
	if d.Lack && len(c.states) > 0 { // the run continues from a checkpoint
		clear(c.states)
		moved = true
	}
	c.mu.Unlock()
	if c.files.reporter != nil && moved {
		c.files.reporter.close()
		c.files = files{}
	}
}

// changes returns the number of ranks that have been lost, and of those that have joined, since the start.
func (c *viewSequence) changes() (lost, joined int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost, c.joined
}

// setRunFolder records the run folder.
func (c *viewSequence) setRunFolder(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.folder = path
}

// runFolder returns the run folder, or --out if this rank does not know it.
func (c *viewSequence) runFolder() string {
	if m := c.memory(0, c.newest(0)); m != nil {
		c.setRunFolder(m.Folder)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.folder, c.cfg.Out)
}

// stops reports whether the run stops after an epoch because too few ranks are left.
func (c *viewSequence) stops() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.few
}

// close closes everything that outlives the views.
func (c *viewSequence) close() { c.files.reporter.close() }
