package predict

import (
	"math"

	"siafu/internal/mapped"
	"siafu/kernels"
)

var linearKind = kind{
	entry:    entry{Name: "linear", Help: "the extrapolation of the two last rows of each ghost, with the gain that is best for own rows"},
	previous: true,
	model:    func(_, _ int, team *kernels.Team, _ *mapped.Arena) model { return &linear{team: team} },
}

// linear extrapolates with one gain γ for a layer:
//
//	H̃ + γ (H̃ - H̃'),  γ = ⟨H - H̃, H̃ - H̃'⟩ / ‖H̃ - H̃'‖²
//
// H̃ and H̃' are the rows of the two last epochs that were received.
type linear struct {
	team *kernels.Team
	gain float32
}

func (l *linear) fit(x examples) Fallback {
	now, stale, product, square := x.now.Host(), x.stale.Host(), 0.0, 0.0
	for i, p := range x.previous.Host() {
		step := float64(stale[i]) - float64(p)
		product += float64((float64(now[i]) - float64(stale[i])) * step)
		square += float64(step * step)
	}
	if square == 0 {
		return Singular
	}
	gain := product / square
	l.gain = float32(gain)
	if math.IsNaN(gain) || math.IsInf(float64(l.gain), 0) {
		return NotFinite
	}
	return none
}

func (l *linear) apply(dst, rows, previous kernels.Mat) {
	l.team.Copy(dst, rows)
	l.team.Blend(dst, 1+l.gain, previous, -l.gain)
}
