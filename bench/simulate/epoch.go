package simulate

import "siafu/ranks/schedule"

// begin begins an epoch of a graph rank: weights, the walks with the sum of losses
// behind the first, gradients. Its end is when the next one's weights are there.
func (h *host) begin(epoch int) {
	h.epoch = epoch
	if epoch == h.s.epochs {
		h.last = h.s.now
		return
	}
	times := h.times()
	h.work(times.Pull, func() {
		h.s.processors.run(times.Left*h.slower, func() { h.walk(0) })
	})
}

// times are those of the epoch under way.
func (h *host) times() *Epoch { return &h.rank.Epochs[h.epoch%len(h.rank.Epochs)] }

// work is a step of one worker, while the others have nothing to do.
func (h *host) work(seconds float64, then func()) {
	seconds *= h.slower
	h.use.Busy += seconds / float64(h.s.Workers)
	h.s.processors.run(seconds, then)
}

// walk goes through the n-th graph of tasks, and what follows.
func (h *host) walk(n int) {
	h.on, h.passed = &h.walks[n], h.s.now
	h.on.Start(h.epoch)
	h.then = func() {
		if n > 0 {
			h.flush()
			return
		}
		h.work(h.times().Score, func() {
			h.sum(losses, lossBytes, func() {
				if len(h.walks) > 1 {
					h.walk(1)
				} else {
					h.flush()
				}
			})
		})
	}
	h.dispatch()
}

// lossBytes is about what ranks sum of an epoch's losses and hits.
const lossBytes = 128

// pass counts the time since the last event of a walk.
func (h *host) pass() {
	if _, awaited := h.on.Awaited(); awaited {
		h.use.Rows += (h.s.now - h.passed) * float64(h.free) / float64(h.s.Workers)
	}
	h.passed = h.s.now
}

// dispatch gives tasks to workers that have none, and ends the walk where it has ended.
func (h *host) dispatch() {
	for h.free > 0 {
		t, ok := h.on.Next()
		if !ok {
			break
		}
		h.free--
		takes := h.times().Tasks[h.on.place[t.Ref]] * h.slower
		h.use.Busy += takes / float64(h.s.Workers)
		h.s.processors.run(takes+h.times().Gap*h.slower, func() { h.done(t) })
	}
	switch {
	case h.on.Finished():
		then := h.then
		h.on = nil
		then()
	case h.free > 0 && h.arrived(): // a worker that has nothing to run has asked
		h.dispatch()
	}
}

// done is the end of a task: a worker takes note of it, asks for messages once, and
// takes the next.
func (h *host) done(t schedule.Task) {
	h.pass()
	h.free++
	if t.Stage == schedule.Send || t.Stage == schedule.SendBackward {
		h.leave(t)
	}
	h.on.Done(t)
	h.arrived()
	h.dispatch()
}

// look is what a worker without a task does when a message comes.
func (h *host) look() {
	if h.free == 0 {
		return
	}
	h.pass()
	if h.arrived() {
		h.dispatch()
	}
}

// leave sends rows to all other ranks, the next one first.
func (h *host) leave(t schedule.Task) {
	backward := t.Stage == schedule.SendBackward
	for k := 1; k < len(h.s.Ranks); k++ {
		to := (h.id + k) % len(h.s.Ranks)
		h.send(to, h.s.bytes(h.id, to, t.Layer, backward), rowBox(t.Layer, h.epoch, backward))
	}
}

func rowBox(layer, epoch int, backward bool) box {
	if backward {
		return box{gradRows, epoch, layer}
	}
	return box{rows, epoch, layer}
}

// arrived tells the walk of the rows that it awaits, if they are there.
func (h *host) arrived() bool {
	t, ok := h.on.Awaited()
	if !ok {
		return false
	}
	b := rowBox(t.Layer, h.epoch, t.Stage == schedule.ReceiveBackward)
	if h.box(b).came < len(h.s.Ranks)-1 {
		return false
	}
	delete(h.boxes, b)
	h.on.Done(t)
	return true
}

// shortBytes is the length up to which a vector is summed in one round
// (world.SumFloat32s).
const shortBytes = 4 << 10

// sum is a sum over all graph ranks: everybody receives everybody's vector, or a share
// of it, and then all sums of shares.
func (h *host) sum(of what, bytes float64, then func()) {
	if bytes <= shortBytes {
		h.round(box{of, h.epoch, 0}, bytes, then)
		return
	}
	share := bytes / float64(len(h.s.Ranks))
	h.round(box{of, h.epoch, 0}, share, func() { h.round(box{of, h.epoch, 1}, share, then) })
}

// round sends so many bytes to all other graph ranks, and awaits theirs.
func (h *host) round(b box, bytes float64, then func()) {
	for k := 1; k < len(h.s.Ranks); k++ {
		h.send((h.id+k)%len(h.s.Ranks), bytes, b)
	}
	h.wait(b, len(h.s.Ranks)-1, then)
}

// wait is await of a rank that does nothing else.
func (h *host) wait(b box, want int, then func()) {
	began := h.s.now
	h.await(b, want, func() {
		h.use.Sums += h.s.now - began
		then()
	})
}

// flush hands gradients over and gets the next weights.
func (h *host) flush() {
	next := func() { h.begin(h.epoch + 1) }
	h.work(h.times().Flush, func() {
		if h.s.Servers == 0 {
			h.sum(gradients, h.s.Weights, next)
			return
		}
		h.send(len(h.s.Ranks)+h.id%h.s.Servers, h.s.Weights, box{gradients, h.epoch, 0})
		h.wait(box{weights, h.epoch, 0}, 1, next)
	})
}

// serve is an epoch of a server: gradients of its ranks come, servers exchange their
// sums, and the weights go to the same ranks.
func (s *simulation) serve(h *host, epoch int) {
	if epoch == s.epochs {
		return
	}
	var mine []int
	for r := range s.Ranks {
		if len(s.Ranks)+r%s.Servers == h.id {
			mine = append(mine, r)
		}
	}
	h.await(box{gradients, epoch, 0}, len(mine), func() {
		for k := 1; k < s.Servers; k++ {
			h.send(len(s.Ranks)+(h.id-len(s.Ranks)+k)%s.Servers, s.Weights, box{sums, epoch, 0})
		}
		h.await(box{sums, epoch, 0}, s.Servers-1, func() {
			s.processors.run(s.Server, func() {
				for _, r := range mine {
					h.send(r, s.Weights, box{weights, epoch, 0})
				}
				s.serve(h, epoch+1)
			})
		})
	})
}
