package forecast

import (
	"siafu/graph/partition"
	"siafu/internal/size"
	"siafu/ranks/world"
)

// Link has the properties of the network between ranks.
type Link struct {
	Bandwidth    float64 // bytes/s on the wire of a host, in each direction
	Latency      float64 // seconds of a message between hosts
	RanksPerHost int     // consecutive ranks share a host
	Copy         float64 // bytes/s between ranks of a host, and between parts of a rank

	View world.View // assignment of parts to ranks; zero: one part per graph rank
}

// host returns the host of a member: a part or a server.
func (l Link) host(member int) int {
	if l.View.Ranks > 0 {
		member = l.View.Rank(member)
	}
	return member / l.RanksPerHost
}

// shared returns the number of parts that the threads of the busiest host work for.
func (l Link) shared(parts int) int {
	if l.View.Ranks == 0 {
		return min(l.RanksPerHost, parts)
	}
	shared := 0
	for r := range min(l.RanksPerHost, l.View.Ranks) { // the first host has the most ranks
		shared += len(l.View.Carried(r))
	}
	return shared
}

// PayloadShare is the fraction of a link's rate that TCP, IP and Ethernet leave for data: 1448 of
// 1538 bytes per frame with an MTU of 1500.
const PayloadShare = 1448. / 1538

// flow collects the concurrent messages of an exchange.
type flow struct {
	link          Link
	out, in, here []int64 // bytes by host: sent, received, copied within it
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

// seconds returns the time until the last host is done: the longer of its two directions, a
// latency for each message of its busiest rank, and its copies.
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

// rows returns the seconds of one exchange of ghost rows without overlap.
func (f *Forecast) rows(e Exchange, parts []partition.RankReport, l Link) float64 {
	move := newFlow(l, f.Graph+f.Servers)
	f.eachMessage(e, parts, func(p, q int, rows int64) {
		bytes, _, _ := payload(f.Codecs[0], rows, int64(e.Width))
		move.add(p, q, bytes)
	})
	return move.seconds()
}

// weightSeconds returns the seconds of an epoch's exchange of weights and gradients.
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
	default: // reduce-scatter and all-gather
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
