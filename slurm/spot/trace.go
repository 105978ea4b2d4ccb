package spot

import (
	"cmp"
	"slices"
)

// Event is a machine that joins or is lost.
type Event struct {
	Seconds float64 // since the begin of the trace
	Add     bool
	Node    int // unique in a trace: a lost machine does not return under its number
}

// Trace is a sequence of events in order of time. Machines of one moment are lost together.
type Trace struct {
	Events  []Event
	Zones   []int    // by node; unknownZone for traces without zones
	Names   []string // by node; empty in generated traces
	Seconds float64  // length
}

const unknownZone = -1

// Statistics summarises a trace.
type Statistics struct {
	Hours          float64 `json:"hours"`
	Machines       int     `json:"machines"`        // maximum at one time
	MeanMachines   float64 `json:"mean_machines"`   // over time
	Added          int     `json:"added"`           // without the machines of the first moment
	Lost           int     `json:"lost"`            // machines
	Moments        int     `json:"moments"`         // with losses
	OneZone        int     `json:"one_zone"`        // moments with all losses in one zone; 0 without zones
	Zones          int     `json:"zones"`           // 0: unknown
	LostPerMoment  float64 `json:"lost_per_moment"` // mean
	PercentPerHour float64 `json:"percent_per_hour"`
	HighestPercent float64 `json:"highest_percent_in_an_hour"`
	LowestPercent  float64 `json:"lowest_percent_in_an_hour"`
}

// Statistics computes the statistics of a trace. Percents refer to the maximum of machines.
func (t *Trace) Statistics() Statistics {
	s := Statistics{Hours: t.Seconds / 3600}
	present, machineSeconds, before := 0, 0.0, 0.0
	byHour := make([]int, max(int(t.Seconds/3600), 1))
	zones := map[int]bool{}
	for moment := range t.moments() {
		machineSeconds += float64(present) * (moment[0].Seconds - before)
		before = moment[0].Seconds
		lost, where := 0, map[int]bool{}
		for _, e := range moment {
			zones[t.zone(e.Node)] = true
			switch {
			case !e.Add:
				present, lost = present-1, lost+1
				where[t.zone(e.Node)] = true
			default:
				present++
				if e.Seconds > 0 {
					s.Added++
				}
			}
		}
		s.Machines = max(s.Machines, present)
		if lost == 0 {
			continue
		}
		s.Lost, s.Moments = s.Lost+lost, s.Moments+1
		byHour[min(int(before/3600), len(byHour)-1)] += lost
		if len(where) == 1 && !where[unknownZone] {
			s.OneZone++
		}
	}
	if delete(zones, unknownZone); len(zones) > 0 {
		s.Zones = len(zones)
	}
	s.MeanMachines = ratio(machineSeconds+float64(present)*(t.Seconds-before), t.Seconds)
	s.LostPerMoment = ratio(float64(s.Lost), float64(s.Moments))
	percent := func(lost int) float64 { return 100 * ratio(float64(lost), float64(s.Machines)) }
	s.PercentPerHour = ratio(percent(s.Lost), s.Hours)
	s.HighestPercent, s.LowestPercent = percent(slices.Max(byHour)), percent(slices.Min(byHour))
	return s
}

// moments yields the events of each moment.
func (t *Trace) moments() func(func([]Event) bool) {
	return func(yield func([]Event) bool) {
		for from := 0; from < len(t.Events); {
			to := from + 1
			for to < len(t.Events) && t.Events[to].Seconds == t.Events[from].Seconds {
				to++
			}
			if !yield(t.Events[from:to]) {
				return
			}
			from = to
		}
	}
}

// zone returns the zone of a node.
func (t *Trace) zone(node int) int {
	if node < len(t.Zones) {
		return t.Zones[node]
	}
	return unknownZone
}

// add adds a machine in a zone and returns its number.
func (t *Trace) add(seconds float64, zone int) int {
	node := len(t.Zones)
	t.Zones = append(t.Zones, zone)
	t.Events = append(t.Events, Event{seconds, true, node})
	return node
}

func (t *Trace) lose(seconds float64, node int) {
	t.Events = append(t.Events, Event{seconds, false, node})
}

// sort orders events by time. Losses of a moment precede its additions.
func sortEvents(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		if c := cmp.Compare(a.Seconds, b.Seconds); c != 0 || a.Add == b.Add {
			return c
		}
		if a.Add {
			return 1
		}
		return -1
	})
}

// ratio returns a/b, 0 for b = 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
