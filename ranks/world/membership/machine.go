// Package membership decides how a run continues after ranks are lost: which ranks carry its
// members in the next view, and from which stored states.
//
// It has no input or output. The caller passes losses and messages to a Machine, and sends its
// reports and decisions to all ranks. When a view has ended on a rank, the rank reports the lost ranks
// that it knows and the states that it stores. The lowest live rank is the coordinator. It decides when
// all live ranks have reported the end of the same view and the same lost ranks. A rank that receives a
// decision sends it on to all before it acts, so that either all live ranks receive it or none. If
// the coordinator is lost, the next one decides from the same reports. Every rank begins every
// decided view, even if it already knows of another loss, and then ends it and reports again.
//
// A process that was started later, a guest, joins with a decision. All live ranks must have reported
// the guest, so that each has a connection to it. A decision admits one guest at most, because two
// guests may have no connection to each other. After a decision the caller must report the losses of
// ranks that it knew as guests. Ranks send decisions to their guests, and the newest one to a guest that
// arrives. A guest acts on a decision when all ranks that it is connected to have sent this decision or are
// lost: the live ranks do not wait for a guest, and may decide without a decision that only it has received.
package membership

import (
	"slices"

	"siafu/ranks/world"
)

// Loss is a lost rank.
type Loss struct {
	Rank int
	// Certain means that the process of the rank has ended. Otherwise the rank is silent, and may
	// still compute.
	Certain bool
}

// State is the stored state of a part after an epoch.
type State struct{ Part, Epoch int }

// Guest is a process that wants to join the world. It becomes a rank when a decision admits it.
type Guest struct {
	ID      uint64 // random
	Host    string
	Zone    string // failure domain
	Contact []byte // how other guests reach it, opaque
}

// Report is the message of a rank whose members have ended a view.
type Report struct {
	Number int    // of the view
	Lost   []Loss // since the start, ascending
	Ended  bool   // the run has ended
	Proposal
	States []State
	Guests []Guest // that this rank has a connection to
}

// Proposal is a request of a rank for the next view.
type Proposal struct {
	View   *world.View // nil: any
	Leaves bool        // the rank must not carry members any more
	Host   bool        // with Leaves: nor the other ranks of its host
	Admits bool        // the view has ended for guests
}

// none reports whether nothing is proposed.
func (p Proposal) none() bool { return p == Proposal{} }

// Decision is the message of a coordinator.
type Decision struct {
	View  world.View
	Lost  []Loss
	Left  []int // ranks that must not carry members any more, ascending
	Done  bool  // the run has ended, or no rank is newly lost and none proposes anything
	Few   bool  // fewer ranks are left than required: the run stops after an epoch
	Lack  bool  // the states of a part are lost: the run continues from a checkpoint
	Epoch int   // from which the run continues, unless Lack is set
	From  []int // by part: the rank that has the state to continue from, -1: none
	// Joined has the ranks that have joined, ascending. They are the last ranks of View.
	Joined []Guest
}

// Machine is the state of one rank.
type Machine struct {
	rank, least int
	view        world.View
	zones       []string // of ranks
	hosts       []string // of ranks
	lost        []Loss
	left        []int    // ranks that must not carry members any more
	settled     int      // number of losses before the current view
	reports     []Report // by rank; Number is -1 before the first
	joined      []Guest
	decided     bool // the current view has been decided to end, and this rank has not begun the next
}

// New returns the machine of a rank in the view v. The run stops if fewer than least ranks are left.
// zones are names of failure domains, by rank, and hosts those of hosts; nil: each rank has its own.
func New(rank, least int, v world.View, zones, hosts []string) *Machine {
	m := &Machine{rank: rank, least: least, view: v, zones: zones, hosts: slices.Clone(hosts), reports: make([]Report, v.Started())}
	for r := range m.reports {
		m.reports[r].Number = -1
	}
	return m
}

// Join returns the machine of the rank that a decision has admitted, in the view of the decision. The
// other parameters are those of New.
func Join(least int, d Decision, zones, hosts []string) *Machine {
	m := New(d.View.Started()-1, least, d.View, zones, hosts)
	m.Lose(d.Lost...)
	m.settled, m.joined, m.left = len(d.Lost), d.Joined, d.Left
	return m
}

// View returns the current view.
func (m *Machine) View() world.View { return m.view }

// Lost reports whether a rank is lost.
func (m *Machine) Lost(rank int) bool {
	return slices.ContainsFunc(m.lost, func(l Loss) bool { return l.Rank == rank })
}

// Live returns the ranks that are not lost, ascending.
func (m *Machine) Live() []int {
	return slices.DeleteFunc(world.All(len(m.reports)), m.Lost)
}

// Lose records losses. It returns those that are new.
func (m *Machine) Lose(losses ...Loss) (lost []int) {
	for _, l := range losses {
		if at := slices.IndexFunc(m.lost, func(k Loss) bool { return k.Rank == l.Rank }); at >= 0 {
			m.lost[at].Certain = m.lost[at].Certain || l.Certain
			continue
		}
		m.lost = append(m.lost, l)
		lost = append(lost, l.Rank)
	}
	return lost
}

// Excluded reports whether this rank must end: others have lost it, or it may be one of the ranks that
// were cut off. Of two groups that cannot reach each other, only the larger one continues, or the one
// with the lowest rank.
func (m *Machine) Excluded() bool {
	live := m.Live()
	if !slices.Contains(live, m.rank) {
		return true
	}
	var silent []int
	for _, l := range m.lost[m.settled:] {
		if !l.Certain {
			silent = append(silent, l.Rank)
		}
	}
	return len(silent) > len(live) || len(silent) == len(live) && slices.Min(silent) < live[0]
}

// Interrupted returns a member of the current view whose rank is lost, or -1.
func (m *Machine) Interrupted() int {
	for member := range m.view.Members() {
		if m.Lost(m.view.Rank(member)) {
			return member
		}
	}
	return -1
}

// Shadow returns the rank that stores copies of this rank's states: the live rank before it in
// another zone if there is one, -1 without other live ranks.
func (m *Machine) Shadow() int {
	live := m.Live()
	at := slices.Index(live, m.rank)
	for k := 1; k < len(live); k++ {
		r := live[(at+len(live)-k)%len(live)]
		if m.zones == nil || m.zones[r] != m.zones[m.rank] {
			return r
		}
	}
	if at < 0 || len(live) < 2 {
		return -1
	}
	return live[(at+len(live)-1)%len(live)]
}

// Report returns this rank's report of the end of the current view, to be sent to all live ranks. It
// must be sent again after each new loss until a decision arrives.
func (m *Machine) Report(ended bool, p Proposal, states []State, guests []Guest) Report {
	r := Report{Number: m.view.Number, Lost: sorted(m.lost), Ended: ended, Proposal: p, States: states, Guests: guests}
	m.reports[m.rank] = r
	return r
}

// Receive records another rank's report. It returns the ranks that the other has lost and this one
// had not.
func (m *Machine) Receive(from int, r Report) (lost []int) {
	m.reports[from] = r
	return m.Lose(r.Lost...)
}

// Decide returns a decision if this rank must make one now.
func (m *Machine) Decide() *Decision {
	live := m.Live()
	if len(live) == 0 || live[0] != m.rank || m.decided {
		return nil
	}
	var proposed *world.View
	left := slices.Clone(m.left)
	ended, same := true, len(m.lost) == m.settled
	for _, r := range live {
		p := m.reports[r]
		if p.Number != m.view.Number || !slices.Equal(ranks(p.Lost), ranks(sorted(m.lost))) {
			return nil
		}
		ended, same = ended && p.Ended, same && p.none()
		if proposed == nil {
			proposed = p.View
		}
		if p.Leaves {
			left = append(left, r)
		}
		if p.Leaves && p.Host {
			left = append(left, m.neighbours(r)...)
		}
	}
	m.decided = true
	slices.Sort(left)
	d := &Decision{Lost: sorted(m.lost), Left: slices.Compact(left), Done: ended || same, Joined: m.joined}
	carriers := slices.DeleteFunc(slices.Clone(live), func(r int) bool { return slices.Contains(d.Left, r) })
	var admitted []Guest
	if !d.Done {
		admitted = m.admitted(live)
	}
	for i, g := range admitted {
		d.Joined = append(slices.Clip(d.Joined), g)
		carriers = append(carriers, m.view.Started()+i)
	}
	d.Few = len(carriers) < max(m.least, 1)
	if len(carriers) == 0 {
		carriers = live
	}
	d.View = m.next(proposed, carriers, len(admitted))
	m.locate(d)
	return d
}

// admitted returns the first guest that all live ranks have reported, if any.
func (m *Machine) admitted(live []int) []Guest {
	for _, g := range m.reports[m.rank].Guests {
		reported := func(r int) bool {
			return slices.ContainsFunc(m.reports[r].Guests, func(other Guest) bool { return other.ID == g.ID })
		}
		if !slices.ContainsFunc(live, func(r int) bool { return !reported(r) }) {
			return []Guest{g}
		}
	}
	return nil
}

// locate chooses the newest epoch of which all parts have a state, and for each part a rank that
// stores it, the one that carries the part if possible.
func (m *Machine) locate(d *Decision) {
	parts := m.view.Parts // other members store nothing
	has := map[State][]int{}
	epochs := map[int]int{} // number of parts with a state
	for _, r := range m.Live() {
		for _, s := range m.reports[r].States {
			if has[s] == nil {
				epochs[s.Epoch]++
			}
			has[s] = append(has[s], r)
		}
	}
	newest := -1
	for epoch, n := range epochs {
		if n == parts {
			newest = max(newest, epoch)
		}
	}
	d.Epoch, d.Lack = newest, newest < 0
	for member := range parts {
		from := -1
		if list := has[State{member, newest}]; len(list) > 0 {
			if from = list[0]; slices.Contains(list, d.View.Rank(member)) {
				from = d.View.Rank(member)
			}
		}
		d.From = append(d.From, from)
	}
}

// Apply begins the view of a decision. It returns false if the decision is not newer than the
// current view.
func (m *Machine) Apply(d Decision) bool {
	if d.View.Number <= m.view.Number {
		return false
	}
	m.Lose(d.Lost...)
	m.settle(d.Lost)
	m.view, m.decided = d.View, false
	for _, g := range d.Joined[len(m.joined):] {
		m.reports = append(m.reports, Report{Number: -1})
		if m.zones != nil {
			m.zones = append(m.zones, g.Zone)
		}
		if m.hosts != nil {
			m.hosts = append(m.hosts, g.Host)
		}
	}
	m.joined, m.left = d.Joined, d.Left
	return true
}

// settle moves losses that a decision has taken into account to the front.
func (m *Machine) settle(lost []Loss) {
	known := func(l Loss) int {
		if slices.Contains(ranks(lost), l.Rank) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(m.lost, func(a, b Loss) int { return known(a) - known(b) })
	m.settled = len(lost)
}

func sorted(l []Loss) []Loss {
	return slices.SortedFunc(slices.Values(l), func(a, b Loss) int { return a.Rank - b.Rank })
}

func ranks(l []Loss) (list []int) {
	for _, x := range l {
		list = append(list, x.Rank)
	}
	return list
}
