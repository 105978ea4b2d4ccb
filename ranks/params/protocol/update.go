package protocol

import (
	"fmt"
	"slices"
	"strings"

	"siafu/internal/wire"
)

// sumsOf returns the sums of an epoch, creating them if needed.
func (s *Server) sumsOf(epoch int) *epochSums {
	e := s.sums[epoch]
	if e == nil {
		e = s.spare.get()
		s.sums[epoch] = e
	}
	return e
}

// checkLayer checks that m is of a layer and has the values of n gradients' sum.
func (s *Server) checkLayer(m Message, n int) error {
	if m.Layer < 0 || m.Layer >= len(s.layers) {
		return s.broken(m, "there are %d layers", len(s.layers))
	}
	want := s.layers[m.Layer].Hi - s.layers[m.Layer].Lo
	if n == 0 {
		want = 0
	}
	if len(m.Values) != want {
		return s.broken(m, "%d values, want %d", len(m.Values), want)
	}
	return nil
}

// gradient adds an interval's gradient in order, and releases the stashed weights after the
// last layer.
func (s *Server) gradient(m Message) error {
	if err := s.checkLayer(m, 1); err != nil {
		return err
	}
	i, e, err := s.entry(m)
	if err != nil {
		return err
	}
	if e.got[m.Layer] {
		return s.broken(m, "duplicate gradient")
	}
	s.stash.markGradient(i, m.Layer)
	sum := &s.sumsOf(m.Epoch).layers[m.Layer]
	if sum.next == i {
		sum.own.add(m.Values, &s.blocks[m.Layer])
		sum.next++
	} else {
		sum.early[i] = s.blocks[m.Layer].get()
		copy(sum.early[i], m.Values)
		s.stash.memory.wait(4 * int64(len(m.Values)))
	}
	s.fold(m.Epoch, m.Layer)
	return s.advance(m.Layer)
}

// close records that all intervals of a rank have chosen their server.
func (s *Server) close(m Message) error {
	if err := s.sender(m); err != nil {
		return err
	}
	if c := s.closed[m.From]; m.Epoch != c+1 {
		return s.broken(m, "the last epoch that the rank closed is %d", c)
	}
	n := 0
	for _, mine := range s.sumsOf(m.Epoch).mine[s.firsts[m.From]:s.firsts[m.From+1]] {
		if mine {
			n++
		}
	}
	if m.Count != n {
		return s.broken(m, "%d intervals have chosen this server, but the rank counts %d", n, m.Count)
	}
	s.closed[m.From]++
	for l := range s.layers {
		s.fold(m.Epoch, l)
		if err := s.advance(l); err != nil {
			return err
		}
	}
	return nil
}

// sum handles another server's sum, which may be of a later epoch or layer.
func (s *Server) sum(m Message) error {
	k := m.From - s.setting.Graph()
	if k < 0 || k >= s.setting.Servers || k == s.index {
		return s.broken(m, "the sender is not another server")
	}
	if err := s.checkLayer(m, m.Count); err != nil {
		return err
	}
	if last := s.heard[k][m.Layer]; m.Epoch != last+1 {
		return s.broken(m, "the last sum of this layer from the server was of epoch %d", last)
	}
	s.heard[k][m.Layer]++
	var p part
	if m.Count > 0 {
		p.add(m.Values, &s.blocks[m.Layer])
		p.count = m.Count
	}
	s.complete(&s.sumsOf(m.Epoch).layers[m.Layer], k, p)
	return s.settle()
}

func (s *Server) complete(sum *layerSum, server int, p part) {
	sum.parts[server] = p
	sum.heard++
}

// fold adds gradients in ascending order of intervals, up to the first that is missing or may
// still be announced.
func (s *Server) fold(epoch, layer int) {
	e := s.sumsOf(epoch)
	sum := &e.layers[layer]
	for r := range s.closed {
		for ; sum.next < s.firsts[r+1]; sum.next++ {
			g := sum.early[sum.next]
			switch {
			case g != nil:
				sum.own.add(g, &s.blocks[layer])
				sum.early[sum.next] = nil
				s.blocks[layer].put(g)
				s.stash.memory.wait(-4 * int64(len(g)))
			case e.mine[sum.next] || s.closed[r] < epoch:
				return
			}
		}
	}
}

// advance sends this server's sum of a layer to the other servers if it is complete, and makes the
// updates that follow. Sums are completed in ascending order of epochs, because all of a rank's
// gradients of an epoch arrive before its next Close.
func (s *Server) advance(layer int) error {
	epoch := s.sent[layer] + 1
	e := s.sums[epoch]
	if e == nil || e.layers[layer].next < s.firsts[s.setting.Graph()] || slices.Min(s.closed) < epoch {
		return nil
	}
	own := e.layers[layer].own
	s.complete(&e.layers[layer], s.index, own)
	s.sent[layer] = epoch
	for k := range s.setting.Servers {
		if k != s.index {
			s.send(Message{
				Type: wire.Sum, To: s.setting.Server(k), Epoch: epoch, Layer: layer,
				Count: own.count, Values: own.values,
			})
		}
	}
	return s.settle()
}

// settle makes the updates whose sums have arrived from all servers. It publishes complete versions
// and sends them to waiting ranks.
func (s *Server) settle() error {
	before := s.Version()
	for {
		epoch := s.Version()
		e := s.sums[epoch]
		if e == nil {
			break
		}
		if err := s.apply(epoch, e); err != nil {
			return err
		}
		if e.applied < len(s.layers) {
			break
		}
		s.stash.publish(s.draft)
		s.draft = nil
		delete(s.sums, epoch)
		e.reset()
		s.spare.put(e)
	}
	if s.Version() > before {
		s.answerWaiting()
	}
	return nil
}

// apply updates the layers of the draft whose sums have arrived from all servers.
func (s *Server) apply(epoch int, e *epochSums) error {
	for l := range e.layers {
		sum := &e.layers[l]
		if sum.applied || sum.heard < s.setting.Servers {
			continue
		}
		grad, err := s.add(epoch, l, sum.parts)
		if err != nil {
			return err
		}
		if s.draft == nil {
			s.draft = s.stash.draft()
		}
		r := s.layers[l]
		s.update.Update(epoch, l, s.draft.weights[r.Lo:r.Hi], grad)
		sum.applied = true
		e.applied++
	}
	return nil
}

// add sums the parts of all servers, ascending, and frees their memory.
func (s *Server) add(epoch, layer int, parts []part) ([]float32, error) {
	total := s.total[:s.layers[layer].Hi-s.layers[layer].Lo]
	count := 0
	for _, p := range parts {
		if p.count == 0 {
			continue
		}
		if count == 0 {
			copy(total, p.values)
		} else {
			accumulate(total, p.values)
		}
		count += p.count
		s.blocks[layer].put(p.values)
	}
	if want := s.firsts[s.setting.Graph()]; count != want {
		return nil, s.miscounted(epoch, layer, parts, count, want)
	}
	return total, nil
}

// miscounted returns an error with each server's count if the sum does not include every
// interval once.
func (s *Server) miscounted(epoch, layer int, parts []part, count, want int) error {
	var list strings.Builder
	for k, p := range parts {
		fmt.Fprintf(&list, " rank %d: %d", s.setting.Server(k), p.count)
	}
	return wire.Mismatch("server", "epoch %d, layer %d: gradients of %d intervals, want %d;%s",
		epoch, layer, count, want, list.String())
}

// answerWaiting responds to requests that waited for the latest version.
func (s *Server) answerWaiting() {
	kept := s.waiting[:0]
	for _, m := range s.waiting {
		switch {
		case m.Type != wire.Fetch && s.Version() >= m.Version:
			s.answer(m, s.stash.latest)
		case m.Type == wire.Fetch && s.Version() >= s.oldest(m):
			s.answer(m, s.stash.assignLatest(s.firsts[m.From]+m.Interval))
		default:
			kept = append(kept, m)
		}
	}
	s.waiting = kept
}
