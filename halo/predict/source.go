package predict

import (
	"time"

	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/catalog"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Memory is the purpose of the arrays of a Source.
const Memory = "predictions of ghost rows"

// Options are the layers and the kind of predictions.
type Options struct {
	Kind string // a name of Choices
	Rows int    // most own rows to learn from; 0: as SampledRows chooses
	// History is the storage format of own rows of earlier epochs, one of Histories.
	History string
	Shapes  []halo.Shape
	Plan    *halo.Plan // without sums
	Timing  refresh.Timing
	// Stored is set if inner stores own rows itself. It sets dst to the stored row of an offered
	// one, and returns its epoch, 0 if there is none. Offer calls it before inner.Offer.
	Stored func(layer, row int, dst []float32) (epoch int)
	// Fitting is called before each fit, unless it is nil.
	Fitting func(epoch int)
	// Ghosts is memory for predicted rows, at least Plan.Ghosts times the largest width. It must be
	// unused from a Take to the end of the layer's gathers. nil: Wrap allocates it.
	Ghosts []float32
	// Maps reports whether views of a layer may have a map. nil: of no layer.
	Maps  func(layer int) bool
	Team  *kernels.Team
	Arena *mapped.Arena

	// Of recurrent predictors.
	Shard  *shard.Shard
	Window int     // steps that a training unrolls (τ)
	Every  int     // epochs between two trainings (ΔT)
	LR     float64 // of Adam (η₂)
	Fresh  bool    // own rows of the current epoch are an input
	Hold   bool    // predictions are those made after the last training
	Seed   uint64
	Sums   Sums
}

// Sums sums arrays over ranks, in a fixed order. Collective.
type Sums interface {
	Float64s(x []float64) error
	Float32s(x []float32) error
}

// Source predicts the forward rows of another source. All rows are in host memory.
type Source struct {
	halo.Collective
	o       Options
	kind    *kind
	model   model
	layers  []*layer // by layer, nil without predictions
	sampled []uint32 // own rows: those to learn from, then those held out
	learned int      // number of the former
	ghosts  []float32
	now     []float32    // sampled own rows from Offer to Take, of one layer at a time
	packed  [2][]float32 // a chunk of rows, and of the rows before them; empty if rows of an epoch adjoin
	guessed []float32    // predictions of held-out or packed rows
	stale   []float32    // scaled or decoded copies of stored own rows, of up to two epochs
	groups  []group
	taken   Counts
	bytes   int64

	recurrent *recurrent // nil: model is fitted in each epoch
}

// Counts are predictions since an earlier call.
type Counts struct {
	Seconds   float64
	Bytes     int64            // memory of the source, not since an earlier call
	Made      int64            // predictions of a layer and age
	Fallbacks [Fallbacks]int64 // stale rows in place of a prediction, by reason
}

// Add adds the counts of c.
func (c *Counts) Add(o Counts) {
	c.Seconds += o.Seconds
	c.Bytes = max(c.Bytes, o.Bytes)
	c.Made += o.Made
	for i, n := range o.Fallbacks {
		c.Fallbacks[i] += n
	}
}

// chunk is the number of rows that are packed for one product.
const chunk = 256

// heldOut is the number of sampled rows for each held-out one.
const heldOut = 8

// Wrap makes a source that predicts the rows of inner in the layers of o.Shapes. Memory comes from
// o.Arena, for the purpose Memory. Not collective.
func Wrap(inner halo.Collective, o Options) *Source {
	k, ok := catalog.Find(kinds, o.Kind)
	if !ok {
		panic("predict: unknown kind")
	}
	o.Arena = o.Arena.For(Memory)
	before := o.Arena.Used()
	s, widest := &Source{Collective: inner, o: o, kind: k}, 0
	for _, l := range o.Shapes {
		widest = max(widest, l.Width)
	}
	if s.ghosts = o.Ghosts; s.ghosts == nil {
		s.ghosts = mapped.Make[float32](o.Arena, o.Plan.Ghosts*widest)
	}
	if k.cell != nil {
		s.recurrent = newRecurrent(&s.o, k, widest)
		s.addLayers(o.Plan.Own)
		if o.Timing.Average != 0 {
			s.stale = mapped.Make[float32](o.Arena, 2*o.Plan.Own*widest)
		}
		s.bytes = o.Arena.Used() - before
		return s
	}
	s.sample(SampledRows(o.Rows, widest, o.Plan.Own))
	n := len(s.sampled)
	s.now = mapped.Make[float32](o.Arena, n*widest)
	s.addLayers(n)
	s.model = k.model(widest, s.learned, o.Team, o.Arena)
	s.stale = mapped.Make[float32](o.Arena, s.copies()*n*widest)
	s.guessed = mapped.Make[float32](o.Arena, max(chunk, n-s.learned)*widest)
	if o.Timing.Period != o.Timing.Interval {
		s.packed[0] = mapped.Make[float32](o.Arena, chunk*widest)
		if k.previous {
			s.packed[1] = mapped.Make[float32](o.Arena, chunk*widest)
		}
	}
	s.bytes = o.Arena.Used() - before
	return s
}

// rowsPerColumn is the default number of rows to learn from for each number of a row. Half as many
// leave up to a fifth more error where rows contain dropout.
const rowsPerColumn = 32

// SampledRows returns the number of own rows to learn from: at most the given number, 0 for the default,
// for predicted rows of at most the given width.
func SampledRows(most, width, own int) int {
	if most == 0 {
		most = rowsPerColumn * width
	}
	return min(most, own)
}

// copies returns the number of epochs whose own rows are copied before use.
func (s *Source) copies() int {
	decodes := newCompression(s.o.History, s.o.Timing) != nil
	switch {
	case s.o.Timing.Average != 0 || decodes && s.kind.previous:
		return 2
	case s.o.Timing.Decay != 1 || decodes:
		return 1
	}
	return 0
}

// addLayers adds the layers, which store n own rows.
func (s *Source) addLayers(n int) {
	var as *compression
	if s.recurrent == nil { // a step of a cell reads all rows
		as = newCompression(s.o.History, s.o.Timing)
	}
	for _, l := range s.o.Shapes {
		for len(s.layers) <= l.Layer {
			s.layers = append(s.layers, nil)
		}
		s.layers[l.Layer] = newLayer(l, n, s.now, s.kind, as, s.o)
		s.layers[l.Layer].mayMap = s.o.Maps != nil && s.o.Maps(l.Layer)
		if s.recurrent != nil {
			s.recurrent.add(s.layers[l.Layer])
		}
	}
}

// sample chooses n own rows at equal distances, and holds out every eighth.
func (s *Source) sample(n int) {
	s.sampled = mapped.Make[uint32](s.o.Arena, n)
	s.learned = n - n/heldOut
	s.o.Arena.Fill(func() {
		next := [2]int{0, s.learned}
		for k := range n {
			to := 0
			if k%heldOut == heldOut-1 {
				to = 1
			}
			s.sampled[next[to]] = uint32(k * s.o.Plan.Own / n)
			next[to]++
		}
	})
}

func (s *Source) of(at halo.Slot) *layer {
	if at.Backward || at.OutsideTraining || at.Layer >= len(s.layers) {
		return nil
	}
	return s.layers[at.Layer]
}

// Ahead reports whether the inner source needs a refresh-only pass before the epoch's pass.
func (s *Source) Ahead(epoch int) bool {
	inner, ok := s.Collective.(interface{ Ahead(epoch int) bool })
	return ok && inner.Ahead(epoch)
}

// Offer implements halo.Source. It stores sampled own rows. If inner stores own rows, rows may be
// more than Plan.Own; only the first are sampled.
func (s *Source) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	if l := s.of(at); l != nil {
		began := time.Now()
		l.record(rows.Host(), s.sampled)
		switch {
		case s.o.Stored != nil:
			l.recall(s.o.Stored, s.sampled)
		case s.recurrent != nil: // it reads the rows of the current epoch from those stored
			s.push(l, at)
		}
		s.taken.Seconds += time.Since(began).Seconds()
	}
	return s.Collective.Offer(at, rows, lo, hi)
}

// push stores the current own rows if they are sent.
func (s *Source) push(l *layer, at halo.Slot) {
	if s.o.Timing.Sends(at.Epoch, at.Ahead) {
		l.push(at.Epoch, s.o.Timing.Average, s.stale)
	}
}

// Take implements halo.Source. It predicts the rows that View returns.
func (s *Source) Take(at halo.Slot) (lo, hi int, err error) {
	lo, hi, err = s.Collective.Take(at)
	l := s.of(at)
	if l == nil || err != nil {
		return lo, hi, err
	}
	view, err := s.Collective.View(at)
	if err == nil {
		began := time.Now()
		l.predicts = s.predict(l, at.Epoch, view)
		if s.recurrent == nil && s.o.Stored == nil {
			s.push(l, at) // predictions no longer need the rows that these replace
		}
		s.taken.Seconds += time.Since(began).Seconds()
	}
	return lo, hi, err
}

// View implements halo.Source. Predicted rows are valid until the next Take. Blocks and Epochs are
// those of the received rows.
func (s *Source) View(at halo.Slot) (halo.View, error) {
	view, err := s.Collective.View(at)
	switch l := s.of(at); {
	case l == nil || !l.predicts:
	case l.maps:
		view.Map, view.Version = s.model.(mapper).affine(l.Width), l.version
	default:
		view.Rows = s.predicted(l, view.Rows.Rows)
	}
	return view, err
}

// MapRows applies the map of a view.
func (s *Source) MapRows(at halo.Slot, view halo.View) halo.View {
	if l := s.of(at); !view.Map.IsNil() {
		rows := s.predicted(l, view.Rows.Rows)
		s.model.apply(rows, view.Rows, kernels.Mat{})
		view.Rows, view.Map = rows, kernels.Mat{}
	}
	return view
}

// Received returns the view of the inner source: the rows from which View is predicted.
func (s *Source) Received(at halo.Slot) (halo.View, error) { return s.Collective.View(at) }

func (s *Source) predicted(l *layer, rows int) kernels.Mat {
	return kernels.HostMat(rows, l.Width, s.ghosts)
}

// Settle implements halo.Collective.
func (s *Source) Settle() error {
	for _, l := range s.layers {
		if l != nil {
			l.forget()
		}
	}
	s.recurrent.forget()
	return s.Collective.Settle()
}

// TakeCounts returns the counts since the last call.
func (s *Source) TakeCounts() Counts {
	taken := s.taken
	taken.Bytes, s.taken = s.bytes, Counts{}
	for _, l := range s.layers {
		if l != nil {
			taken.Bytes += l.compressed()
		}
	}
	return taken
}

// group is a set of ghosts with the same epochs: of their rows, and of the rows before these, 0
// if not needed.
type group struct{ epoch, previous int32 }

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
	if len(l.previous) > 0 {
		l.shift(view)
	}
	rows := 0 // that need a prediction
	s.groups = s.groups[:0]
	s.visit(l, view, func(g group, lo, hi int) {
		if int(g.epoch) != epoch {
			s.addGroup(g)
			rows += hi - lo
		}
	})
	all := len(s.groups) == 1 && rows == view.Rows.Rows
	for _, g := range s.groups {
		ref, ok := s.examples(l, g, epoch)
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
		if l.maps = all && l.mayMap; !l.maps {
			s.apply(l, view, g)
		} else if l.mapped != g.epoch { // other rows
			l.version, l.mapped = l.version+1, g.epoch
		}
	}
	s.taken.Fallbacks[none] = 0
	return any
}

// addGroup adds a group unless it is listed.
func (s *Source) addGroup(g group) {
	for _, have := range s.groups {
		if have == g {
			return
		}
	}
	s.groups = append(s.groups, g)
}

// visit visits runs of ghosts of one group, in ascending order.
func (s *Source) visit(l *layer, view halo.View, visit func(g group, lo, hi int)) {
	view.ForEachBlock(func(b halo.Block) {
		g := group{epoch: int32(b.Epoch)}
		if len(l.previous) == 0 {
			visit(g, b.First, b.First+b.Rows)
			return
		}
		for lo, end := b.First, b.First+b.Rows; lo < end; {
			hi := lo + 1
			for hi < end && l.previousEpochs[hi] == l.previousEpochs[lo] {
				hi++
			}
			g.previous = l.previousEpochs[lo]
			visit(g, lo, hi)
			lo = hi
		}
	})
}

// examples returns the own rows of a group: all sampled ones.
func (s *Source) examples(l *layer, g group, epoch int) (x examples, ok bool) {
	n := len(s.sampled)
	x.now = kernels.HostMat(n, l.Width, l.now)
	stale, kept := l.at(g.epoch, s.stale)
	if stale == nil {
		return x, false
	}
	if x.kept = kept; s.o.Timing.Decay != 1 { // stale rows have another weight in each epoch
		clear(kept)
	}
	x.stale = kernels.HostMat(n, l.Width, s.decay(l, stale, epoch-int(g.epoch)))
	if s.kind.previous {
		previous, _ := l.at(g.previous, s.stale[min(n*l.Width, len(s.stale)):])
		if previous == nil {
			return x, false
		}
		x.previous = kernels.HostMat(n, l.Width, previous)
	}
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
	part := func(m kernels.Mat) kernels.Mat {
		if m.IsNil() {
			return m
		}
		return m.Part(from, to)
	}
	if reason := s.model.fit(examples{part(x.now), part(x.stale), part(x.previous), x.kept}); reason != none {
		return reason
	}
	from, to = s.learned, len(s.sampled)
	now, stale := part(x.now), part(x.stale)
	predicted := kernels.HostMat(to-from, l.Width, s.guessed)
	s.model.apply(predicted, stale, part(x.previous))
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
			sums[k] += d * d
		}
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		d := float64(v) - float64(y[i])
		sums[0] += d * d
	}
	return sums[0] + sums[1] + sums[2] + sums[3]
}

// apply predicts the rows of a group: long runs in place, others in chunks.
func (s *Source) apply(l *layer, view halo.View, g group) {
	w, dst, rows := l.Width, s.predicted(l, view.Rows.Rows), view.Rows
	places, count := [chunk]int{}, 0
	flush := func() {
		out, previous := kernels.HostMat(count, w, s.guessed), kernels.Mat{}
		if len(l.previous) > 0 {
			previous = kernels.HostMat(count, w, s.packed[1])
		}
		s.model.apply(out, kernels.HostMat(count, w, s.packed[0]), previous)
		for k := range count {
			copy(dst.Host()[places[k]*w:(places[k]+1)*w], out.Host()[k*w:])
		}
		count = 0
	}
	s.visit(l, view, func(of group, lo, hi int) {
		if of != g {
			return
		}
		if hi-lo >= chunk || len(s.packed[0]) == 0 {
			previous := kernels.Mat{}
			if len(l.previous) > 0 {
				previous = kernels.HostMat(hi-lo, w, l.previous[lo*w:hi*w])
			}
			s.model.apply(dst.Part(lo, hi), rows.Part(lo, hi), previous)
			return
		}
		for i := lo; i < hi; i++ {
			copy(s.packed[0][count*w:], rows.Host()[i*w:(i+1)*w])
			if len(l.previous) > 0 {
				copy(s.packed[1][count*w:], l.previous[i*w:(i+1)*w])
			}
			if places[count], count = i, count+1; count == chunk {
				flush()
			}
		}
	})
	if count > 0 {
		flush()
	}
}
