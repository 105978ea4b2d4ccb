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
	// Maps returns a function with which Take sets the map of a layer: the gathers of the pass then read
	// x M + c in place of each received row x. m is M with the row c below it [Width+1 x Width], valid until
	// the next Take. Received rows with the same version are equal. nil: rows of the layer are predicted one
	// by one; without Maps, all are.
	Maps  func(layer int) (set func(m kernels.Mat, version int))
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
	now     []float32 // sampled own rows from Offer to Take, of one layer at a time
	packed  []float32 // a chunk of rows; empty if rows of an epoch adjoin
	guessed []float32 // predictions of held-out or packed rows
	stale   []float32 // scaled or decoded copies of stored own rows, of up to two epochs
	groups  []int32   // epochs of the ghosts that need a prediction
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
		s.packed = mapped.Make[float32](o.Arena, chunk*widest)
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
	case s.o.Timing.Average != 0:
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
		if s.o.Maps != nil {
			s.layers[l.Layer].setMap = s.o.Maps(l.Layer)
		}
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

// Take implements halo.Source. It predicts the rows that View returns, or sets a map of them.
func (s *Source) Take(at halo.Slot) (lo, hi int, err error) {
	lo, hi, err = s.Collective.Take(at)
	l := s.of(at)
	if l == nil || err != nil {
		return lo, hi, err
	}
	view, err := s.Collective.View(at)
	if err == nil {
		began := time.Now()
		if l.predicts = s.predict(l, at.Epoch, view); l.predicts && l.maps {
			l.setMap(s.model.affine(l.Width), l.version)
		}
		if s.recurrent == nil && s.o.Stored == nil {
			s.push(l, at) // predictions no longer need the rows that these replace
		}
		s.taken.Seconds += time.Since(began).Seconds()
	}
	return lo, hi, err
}

// View implements halo.Source. Predicted rows are valid until the next Take. Blocks and Epochs are
// those of the received rows. If Take has set a map, the rows are the received ones.
func (s *Source) View(at halo.Slot) (halo.View, error) {
	view, err := s.Collective.View(at)
	if l := s.of(at); l != nil && l.predicts && !l.maps {
		view.Rows = s.predicted(l, view.Rows.Rows)
	}
	return view, err
}

// Predicted returns a view with predicted rows. It applies the map that Take has set.
func (s *Source) Predicted(at halo.Slot, view halo.View) halo.View {
	if l := s.of(at); l != nil && l.predicts && l.maps {
		rows := s.predicted(l, view.Rows.Rows)
		s.model.apply(rows, view.Rows)
		view.Rows = rows
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
