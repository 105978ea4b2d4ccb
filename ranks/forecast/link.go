package forecast

import (
	"siafu/graph/partition"
	"siafu/internal/size"
	"siafu/ranks/world"
)

// Link has the properties of the network between ranks.
type Link struct {
	Bandwidth    float64 // bytes a second on the wire, into a host and out of it at the same time
	Latency      float64 // seconds of a message between hosts
	RanksPerHost int     // neighbours in the order of ranks share a host
	Copy         float64 // bytes a second between ranks of one host, and between parts of one rank

	View world.View // which rank carries which parts; the zero view: each graph rank has one
}

// host is where a member of a run's world is: a part, or a server.
func (l Link) host(member int) int {
	if l.View.Ranks > 0 {
		member = l.View.Rank(member)
	}
	return member / l.RanksPerHost
}

// shared is how many of so many parts a host's threads work for.
func (l Link) shared(parts int) int {
	if l.View.Ranks == 0 {
		return min(l.RanksPerHost, parts)
	}
	shared := 0
	for r := range min(l.RanksPerHost, l.View.Ranks) { // the first host has the most
		shared += len(l.View.Carried(r))
	}
	return shared
}

// PayloadShare is how much of a link's rate is left for data by TCP, IP and
// Ethernet with frames of 1500 bytes: 1448 of 1538 bytes.
const PayloadShare = 1448. / 1538

// flow is what moves at one time.
type flow struct {
	link          Link
	out, in, here []int64 // bytes by host: leaving, arriving, staying
	messages      []int64 // by member, to other hosts
}

func newFlow(l Link, members int) *flow {
	hosts := l.host(members-1) + 1
	return &flow{l, make([]int64, hosts), make([]int64, hosts), make([]int64, hosts), make([]int64, members)}
}

// add counts a message from member p to member q.
func (f *flow) add(p, q int, bytes int64) {
	from, to := f.link.host(p), f.link.host(q)
	if from == to {
		f.here[from] = size.Sum(f.here[from], bytes)
		return
	}
	f.out[from] = size.Sum(f.out[from], bytes)
	f.in[to] = size.Sum(f.in[to], bytes)
	f.messages[p]++
}

// seconds is how long it takes until the last host is done: the longer of its
// two directions, a latency for each message of the busiest rank, and the
// copies within it.
func (f *flow) seconds() float64 {
	var busiest, most float64
	for h := range f.out {
		busiest = max(busiest, float64(max(f.out[h], f.in[h]))/(PayloadShare*f.link.Bandwidth)+float64(f.here[h])/f.link.Copy)
	}
	for _, n := range f.messages {
		most = max(most, float64(n))
	}
	return busiest + most*f.link.Latency
}

// rows is one exchange of ghost rows, as long as it is not hidden by other
// work.
func (f *Forecast) rows(e Exchange, parts []partition.RankReport, l Link) float64 {
	move := newFlow(l, f.Graph+f.Servers)
	f.eachMessage(e, parts, func(p, q int, rows int64) {
		bytes, _, _ := payload(f.Codecs[0], rows, int64(e.Width))
		move.add(p, q, bytes)
	})
	return move.seconds()
}

// weightSeconds returns the exchange of weights and gradients in an epoch.
func (f *Forecast) weightSeconds(l Link) float64 {
	down, up := newFlow(l, f.Graph+f.Servers), newFlow(l, f.Graph+f.Servers)
	bytes := floats(int64(f.Net.NumWeights()))
	switch {
	case f.Servers > 0:
		for r := range f.Graph {
			server := f.Graph + r%f.Servers
			down.add(server, r, bytes)
			up.add(r, server, bytes)
		}
		for k := range f.Servers {
			for other := range f.Servers {
				if k != other {
					up.add(f.Graph+k, f.Graph+other, bytes)
				}
			}
		}
	default: // each rank adds up its share of all, and gets the shares of the others
		for p := range f.Graph {
			for q := range f.Graph {
				if p != q {
					down.add(p, q, bytes/int64(f.Graph))
					up.add(p, q, bytes/int64(f.Graph))
				}
			}
		}
	}
	return down.seconds() + up.seconds()
}
