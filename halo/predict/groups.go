package predict

import (
	"slices"

	"siafu/halo"
	"siafu/kernels"
)

// predict sets s.ghosts to the rows of a view, predicted for an epoch where possible. It reports
// whether any row is.
func (s *Source) predict(l *layer, epoch int, view halo.View) (any bool) {
	if s.recurrent != nil {
		any, reason := s.recurrent.take(l, epoch, view, s.predicted(l, view.Rows.Rows))
		if any {
			s.taken.Made++
		} else if reason != none {
			s.taken.Fallbacks[reason]++
		}
		return any
	}
	rows := 0 // that need a prediction
	s.groups = s.groups[:0]
	view.ForEachBlock(func(b halo.Block) {
		if b.Epoch != epoch {
			if !slices.Contains(s.groups, int32(b.Epoch)) {
				s.groups = append(s.groups, int32(b.Epoch))
			}
			rows += b.Rows
		}
	})
	all := len(s.groups) == 1 && rows == view.Rows.Rows
	for _, of := range s.groups {
		ref, ok := s.examples(l, of, epoch)
		if !ok {
			continue
		}
		if s.o.Fitting != nil {
			s.o.Fitting(epoch)
		}
		reason := s.fit(l, ref)
		s.taken.Fallbacks[reason]++
		if reason != none {
			continue
		}
		if !any && !all {
			copy(s.predicted(l, view.Rows.Rows).Host(), view.Rows.Host())
		}
		s.taken.Made++
		any = true
		if l.maps = all && l.setMap != nil; !l.maps {
			s.apply(l, view, of)
		} else if l.mapped != of { // other rows
			l.version, l.mapped = l.version+1, of
		}
	}
	s.taken.Fallbacks[none] = 0
	return any
}

// examples returns the sampled own rows for ghosts of an epoch.
func (s *Source) examples(l *layer, of int32, epoch int) (x examples, ok bool) {
	n := len(s.sampled)
	x.now = kernels.HostMat(n, l.Width, l.now)
	stale, kept := l.at(of, s.stale)
	if stale == nil {
		return x, false
	}
	if x.kept = kept; s.o.Timing.Decay != 1 { // stale rows have another weight in each epoch
		clear(kept)
	}
	x.stale = kernels.HostMat(n, l.Width, s.decay(l, stale, epoch-int(of)))
	return x, true
}

// decay returns own rows with the weights that the policy gives to rows of an age.
func (s *Source) decay(l *layer, rows []float32, age int) []float32 {
	if s.o.Timing.Decay == 1 {
		return rows
	}
	scaled, by := s.stale[:len(rows)], float32(1)
	for range age {
		by *= s.o.Timing.Decay
	}
	copy(scaled, rows)
	for i := 0; i < len(scaled); i += l.Width {
		kernels.ScaleRow(scaled[i:i+l.Width-l.Scores], by)
	}
	return scaled
}

// fit fits the model to a layer's examples. It compares the errors on held-out rows.
func (s *Source) fit(l *layer, x examples) Fallback {
	if len(s.sampled) < 2*l.Width {
		return FewRows
	}
	from, to := 0, s.learned
	part := func(m kernels.Mat) kernels.Mat { return m.Part(from, to) }
	if reason := s.model.fit(examples{part(x.now), part(x.stale), x.kept}); reason != none {
		return reason
	}
	from, to = s.learned, len(s.sampled)
	now, stale := part(x.now), part(x.stale)
	predicted := kernels.HostMat(to-from, l.Width, s.guessed)
	s.model.apply(predicted, stale)
	// Not <, so that NaN falls back.
	if !(distance(predicted.Host(), now.Host()) < distance(stale.Host(), now.Host())) {
		return NotBetter
	}
	return none
}

// distance returns ‖x - y‖².
func distance(x, y []float32) float64 {
	var sums [4]float64 // additions of one sum would wait for each other
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		for k := range 4 {
			d := float64(x[k]) - float64(y[k])
			sums[k] += float64(d * d)
		}
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		d := float64(v) - float64(y[i])
		sums[0] += float64(d * d)
	}
	return sums[0] + sums[1] + sums[2] + sums[3]
}

// apply predicts the rows of an epoch: long runs in place, others in chunks.
func (s *Source) apply(l *layer, view halo.View, of int32) {
	w, dst, rows := l.Width, s.predicted(l, view.Rows.Rows), view.Rows
	places, count := [chunk]int{}, 0
	flush := func() {
		out := kernels.HostMat(count, w, s.guessed)
		s.model.apply(out, kernels.HostMat(count, w, s.packed))
		for k := range count {
			copy(dst.Host()[places[k]*w:(places[k]+1)*w], out.Host()[k*w:])
		}
		count = 0
	}
	view.ForEachBlock(func(b halo.Block) {
		if int32(b.Epoch) != of {
			return
		}
		lo, hi := b.First, b.First+b.Rows
		if hi-lo >= chunk || len(s.packed) == 0 {
			s.model.apply(dst.Part(lo, hi), rows.Part(lo, hi))
			return
		}
		for i := lo; i < hi; i++ {
			copy(s.packed[count*w:], rows.Host()[i*w:(i+1)*w])
			if places[count], count = i, count+1; count == chunk {
				flush()
			}
		}
	})
	if count > 0 {
		flush()
	}
}
