package spot

import (
	"math"
	"math/rand/v2"
	"slices"

	"siafu/internal/fault"
)

// GenerateOptions describe a trace.
type GenerateOptions struct {
	Machines int     `default:"64" help:"Requested machines."`
	Hours    float64 `default:"24" help:"Length in hours."`
	Rate     float64 `default:"0.1" help:"Fraction of the requested machines lost per hour."`
	Zones    int     `default:"3" help:"Availability zones."`
	Bulk     float64 `default:"3" help:"Mean number of machines lost at one moment, from 1."`
	Across   float64 `default:"0.055" help:"Fraction of moments with losses in several zones. Bamboo, section 3.3: 7 of 127."`
	Regrow   float64 `default:"20" help:"Mean minutes until a lost machine is replaced."`
	Seed     uint64  `default:"1" help:"Seed."`
}

// Upper limits of a trace. They keep its events in memory.
const (
	maxMachines = 100_000
	maxHours    = 10_000
)

// Validate returns a fault of kind Usage for values outside their ranges.
func (o GenerateOptions) Validate() error {
	bad := func(flag string, value any, remedy string) error {
		return fault.New(fault.Usage, op, "", "--%s=%v", flag, value).Then("%s", remedy)
	}
	switch {
	case o.Machines < 1 || o.Machines > maxMachines:
		return bad("machines", o.Machines, "set 1 to 100000")
	case !(o.Hours > 0 && o.Hours <= maxHours):
		return bad("hours", o.Hours, "set more than 0, at most 10000")
	case !(o.Rate >= 0 && o.Rate <= 60):
		return bad("rate", o.Rate, "set a fraction per hour from 0 to 60")
	case o.Zones < 1 || o.Zones > 100:
		return bad("zones", o.Zones, "set 1 to 100")
	case !(o.Bulk >= 1 && o.Bulk <= float64(o.Machines)):
		return bad("bulk", o.Bulk, "set 1 to the number of machines")
	case !(o.Across >= 0 && o.Across <= 1):
		return bad("across", o.Across, "set 0 to 1")
	case !(o.Regrow > 0 && o.Regrow <= 60*maxHours):
		return bad("regrow", o.Regrow, "set minutes above 0")
	}
	return nil
}

// Generate makes a trace with losses in bulk and regrowth. Moments of losses are a Poisson process.
// The machines of a moment come from one zone, or with probability Across from all zones
// (Bamboo, NSDI'23, §3.3). Their number is geometric with mean Bulk. Each missing machine is
// replaced after an exponential delay in a random zone, so additions are incremental.
func Generate(o GenerateOptions) (*Trace, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x5107))
	t := &Trace{Seconds: o.Hours * 3600}
	present := make([]int, o.Machines)
	for i := range present {
		present[i] = t.add(0, i%o.Zones)
	}
	var arrivals []float64
	for now := 0.0; o.Rate > 0; {
		now += r.ExpFloat64() * 3600 * o.Bulk / (o.Rate * float64(o.Machines))
		if now >= t.Seconds {
			break
		}
		now = math.Round(now*1000) / 1000 // files have milliseconds
		slices.Sort(arrivals)
		for len(arrivals) > 0 && arrivals[0] < now {
			present = append(present, t.add(arrivals[0], r.IntN(o.Zones)))
			arrivals = arrivals[1:]
		}
		for _, node := range o.victims(r, t, present) {
			t.lose(now, node)
			present = slices.DeleteFunc(present, func(p int) bool { return p == node })
			arrivals = append(arrivals, math.Ceil(now*1000+r.ExpFloat64()*o.Regrow*60_000)/1000)
		}
	}
	slices.Sort(arrivals)
	for _, at := range arrivals {
		if at < t.Seconds {
			t.add(at, r.IntN(o.Zones))
		}
	}
	sortEvents(t.Events)
	return t, nil
}

// victims selects the machines of a moment.
func (o GenerateOptions) victims(r *rand.Rand, t *Trace, present []int) []int {
	if len(present) == 0 {
		return nil
	}
	candidates := slices.Clone(present)
	r.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	n := 1
	for n < len(candidates) && r.Float64() >= 1/o.Bulk {
		n++
	}
	if across := r.Float64() < o.Across; !across || o.Zones == 1 {
		zone := t.Zones[candidates[0]]
		candidates = slices.DeleteFunc(candidates, func(node int) bool { return t.Zones[node] != zone })
	} else if n = max(n, 2); len(candidates) > 1 {
		// The second machine is from another zone, if one exists.
		if k := slices.IndexFunc(candidates, func(node int) bool { return t.Zones[node] != t.Zones[candidates[0]] }); k > 0 {
			candidates[1], candidates[k] = candidates[k], candidates[1]
		}
	}
	return candidates[:min(n, len(candidates))]
}

// Hourly makes traces hour by hour, with a constant probability of losing a machine in an hour
// (Bamboo, NSDI'23, §3.6.2): "we randomly generated different creation probabilities per hour and
// also randomly picked zones for allocations". Each hour of the day has its own probability that a
// missing machine is added. A loss or an addition happens at a random second of its hour.
//
// The paper does not state three details. They are those of the authors' published simulator. The
// first hour's creation probability also selects the machines of the begin. A machine can be lost in
// the hour in which it is added. Machines lost in an hour are requested again in this hour.
type Hourly struct {
	Machines, Zones int
	Probability     float64

	r       *rand.Rand
	create  [24]float64
	present []int
}

// NewHourly returns the generator of a seed.
func NewHourly(machines, zones int, probability float64, seed uint64) *Hourly {
	h := &Hourly{Machines: machines, Zones: zones, Probability: probability, r: rand.New(rand.NewPCG(seed, 0xba3b00))}
	for hour := range h.create {
		h.create[hour] = h.r.Float64()
	}
	return h
}

// Extend appends the events of the trace's next hour.
func (h *Hourly) Extend(t *Trace) {
	hour, begin := int(t.Seconds/3600), t.Seconds
	first := len(t.Events)
	if hour == 0 {
		for range h.Machines {
			if h.r.Float64() < h.create[0] {
				h.present = append(h.present, t.add(0, h.r.IntN(h.Zones)))
			}
		}
	}
	losses, additions := map[int]float64{}, []float64(nil)
	for _, node := range h.present {
		if h.r.Float64() < h.Probability {
			losses[node] = h.second(begin)
		}
	}
	for range h.Machines - len(h.present) + len(losses) {
		if h.r.Float64() < h.create[hour%24] {
			additions = append(additions, h.second(begin))
		}
	}
	slices.Sort(additions)
	for _, at := range additions {
		lost := 0
		for _, when := range losses {
			if when <= at {
				lost++
			}
		}
		if len(h.present)-lost >= h.Machines {
			continue
		}
		node := t.add(at, h.r.IntN(h.Zones))
		h.present = append(h.present, node)
		if h.r.Float64() < h.Probability {
			if when := h.second(begin); when > at {
				losses[node] = when
			}
		}
	}
	for _, node := range slices.Clone(h.present) {
		if when, is := losses[node]; is {
			t.lose(when, node)
		}
	}
	h.present = slices.DeleteFunc(h.present, func(node int) bool { _, is := losses[node]; return is })
	sortEvents(t.Events[first:])
	t.Seconds += 3600
}

// second returns a random second of an hour that begins at a time. It is not 0: the events of the
// begin are a moment of their own.
func (h *Hourly) second(begin float64) float64 { return begin + 1 + float64(h.r.IntN(3599)) }
