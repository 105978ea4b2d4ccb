package predict

import (
	"strconv"
	"strings"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// momentum is the value of --predict that averages rows of a history.
const momentum = "momentum"

// momentumChoice describes it.
var momentumChoice = entry{Name: momentum, Form: "momentum:B", Help: "a moving average of the history (GraphFM-OB) with weight B of the " +
	"rows that a batch computes for vertices outside, from their neighbours in the batch; --batch history:N only"}

// MomentumShare returns B of the value momentum:B of --predict. ok is false if name is another value, or
// if B is not above 0 and at most 1.
func MomentumShare(name string) (share float32, ok bool) {
	text, is := strings.CutPrefix(name, momentum+":")
	x, err := strconv.ParseFloat(text, 32)
	return float32(x), is && err == nil && x > 0 && x <= 1
}

// Momentum averages the rows of a history outside of a mini-batch (GraphFM-OB, Yu et al., "GraphFM:
// Improving Large-Scale GNN Training via Feature Momentum", ICML'22):
//
//	h̃ ← (1 - B) h̃ + B ĥ
//
// h̃ is the stored row of a vertex outside of the batch. ĥ is the row that the batch computes for it from
// the vertex's neighbours in the batch. The batch uses the average, and the average replaces the stored
// row. All rows are in host memory.
type Momentum struct {
	halo.Collective
	share    float32
	computed func(at halo.Slot, batch kernels.Mat) kernels.Mat
	replace  func(at halo.Slot, rows kernels.Mat)
	rows     []float32   // averages of the current layer
	hat      kernels.Mat // ĥ of the current layer
}

// NewMomentum makes a source that averages the rows of inner, at most the given number. computed returns
// ĥ [outside x width] of a layer from the batch's rows of this layer and of those before; replace stores
// the averages. Memory comes from a, for the purpose Memory. Not collective.
func NewMomentum(inner halo.Collective, share float32, outside int, shapes []halo.Shape, computed func(halo.Slot, kernels.Mat) kernels.Mat,
	replace func(halo.Slot, kernels.Mat), a *mapped.Arena) *Momentum {
	widest := 0
	for _, l := range shapes {
		widest = max(widest, l.Width)
	}
	return &Momentum{Collective: inner, share: share, computed: computed, replace: replace,
		rows: mapped.Make[float32](a.For(Memory), outside*widest)}
}

// Offer implements halo.Source. It computes ĥ.
func (m *Momentum) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	m.hat = m.computed(at, rows)
	return m.Collective.Offer(at, rows, lo, hi)
}

// Take implements halo.Source. It averages the rows that View returns, and stores them.
func (m *Momentum) Take(at halo.Slot) (lo, hi int, err error) {
	lo, hi, err = m.Collective.Take(at)
	if err != nil {
		return lo, hi, err
	}
	view, err := m.Collective.View(at)
	if err != nil {
		return lo, hi, err
	}
	stored, hat := view.Rows.Host(), m.hat.Host()
	averages := m.rows[:len(stored)]
	for i, x := range stored {
		averages[i] = float32((1-m.share)*x) + float32(m.share*hat[i])
	}
	m.replace(at, kernels.HostMat(view.Rows.Rows, view.Rows.Cols, averages))
	return lo, hi, nil
}

// View implements halo.Source. Averages are valid until the next Take.
func (m *Momentum) View(at halo.Slot) (halo.View, error) {
	view, err := m.Collective.View(at)
	view.Rows = kernels.HostMat(view.Rows.Rows, view.Rows.Cols, m.rows)
	return view, err
}

// Received returns the view of the inner source: h̃ before the average.
func (m *Momentum) Received(at halo.Slot) (halo.View, error) { return m.Collective.View(at) }
