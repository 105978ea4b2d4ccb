package tune

import (
	"slices"

	"siafu/ranks/world/link"
)

// Exchange is one of an epoch's exchanges of rows.
type Exchange struct {
	Width    int  // floats a row
	Backward bool // gradients of ghosts go to owners
}

// Traffic is what graph ranks send one another in an epoch.
type Traffic struct {
	Hosts     []string // of the ranks
	Rows      []int64  // [n x n]: rows that rank p sends rank q forward, at p*n+q
	Exchanges []Exchange
}

// Cost is what a codec costs one exchange on the slowest rank.
type Cost struct {
	Encode float64 // seconds a byte of raw rows, all of a rank's threads together
	Decode float64
	Size   float64 // bytes sent for a byte of raw rows
}

// Model foretells the seconds of exchanges.
type Model struct {
	Traffic
	Links *link.Table
	rates []float64 // of each rank's host: bytes a second to other hosts
}

// NewModel is the model of a traffic over measured links.
func NewModel(t Traffic, links *link.Table) *Model {
	m := &Model{Traffic: t, Links: links, rates: make([]float64, len(t.Hosts))}
	for p := range m.rates {
		for q := range m.rates {
			if t.Hosts[p] == t.Hosts[q] {
				m.rates[p] += m.share(q)
			}
		}
	}
	return m
}

// share is what rank p was measured to get of its host's link: the median over
// its peers on other hosts, 0 where there is none. Ranks of a host were measured
// at the same time, so that their shares add up to the link.
func (m *Model) share(p int) float64 {
	var rates []float64
	for q := range m.Hosts {
		if m.Hosts[p] != m.Hosts[q] {
			_, rate := m.Links.At(p, q)
			rates = append(rates, rate)
		}
	}
	return median(rates)
}

// Seconds is what an epoch's exchanges take with a codec of these costs, by
// exchange. hidden are the seconds of other work while each one's messages
// travel, nil for none; slack is how much longer messages take than the links
// were measured to need.
//
// Encoding comes before, decoding after what travels. That chunks overlap with
// both is left out, and so the figures are upper bounds.
func (m *Model) Seconds(costs []Cost, hidden []float64, slack float64) float64 {
	sum := 0.0
	for x, e := range m.Exchanges {
		away, here := m.travel(e, costs[x].Size)
		if hidden != nil {
			away = max(away-hidden[x]/slack, 0)
		}
		sum += m.work(e, costs[x]) + slack*(away+here)
	}
	return sum
}

// work is what the busiest rank takes to encode and decode.
func (m *Model) work(e Exchange, c Cost) float64 {
	most := 0.0
	for p := range m.Hosts {
		var out, in float64
		for q := range m.Hosts {
			out += m.bytes(e, p, q)
			in += m.bytes(e, q, p)
		}
		most = max(most, c.Encode*out+c.Decode*in)
	}
	return most
}

// bytes are those of the raw rows that go from p to q.
func (m *Model) bytes(e Exchange, p, q int) float64 {
	if e.Backward {
		p, q = q, p
	}
	return 4 * float64(e.Width) * float64(m.Rows[p*len(m.Hosts)+q])
}

// travel is how long messages are under way between hosts, until the busiest
// link and the slowest pair are done, and how long ranks are busy with those that
// stay on a host.
func (m *Model) travel(e Exchange, size float64) (away, here float64) {
	links := map[string][2]float64{} // by host: bytes that leave, and that come
	latest := 0.0
	for p, from := range m.Hosts {
		var copies, delays float64
		for q, to := range m.Hosts {
			bytes := size * m.bytes(e, p, q)
			if bytes == 0 {
				continue
			}
			latency, rate := m.Links.At(p, q)
			if from == to {
				copies += latency + bytes/rate
				continue
			}
			delays += latency
			away = max(away, bytes/rate)
			out, in := links[from], links[to]
			out[0], in[1] = out[0]+bytes, in[1]+bytes
			links[from], links[to] = out, in
		}
		here, latest = max(here, copies), max(latest, delays)
	}
	for p, host := range m.Hosts {
		if l := links[host]; l != [2]float64{} {
			away = max(away, max(l[0], l[1])/m.rates[p])
		}
	}
	return away + latest, here
}

// median of x, 0 of none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
