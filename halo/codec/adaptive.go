package codec

import (
	"math"
	"slices"
	"sync"

	"siafu/kernels"
)

const idAdaptive = 5 // in block headers

var adaptiveKind = kind{
	entry: entry{Name: "adaptive", Form: "adaptive[:BITS]",
		Help: "as `int8`, with 8, 4 or 2 bits a number, BITS on average (2 to 8, default 4), " +
			"more of them where they lower the error most (after AdaQP, MLSys'23, section 4)"},
	make: newAdaptive, param: &parameter{defaultBudget, leastBudget, mostBudget}, class: "int4", auto: []string{"", "+s2"},
}

// adaptive rounds like uniform. Each row has 8, 4 or 2 bits an element, or none if all its
// elements are the same bfloat16. The mean of a block does not exceed a budget, and the error
// is minimal.
//
// A row whose elements span s has variance in proportion to (s/(2^b-1))² in b bits (AdaQP:
// Wan, Zhao and Wu, MLSys'23, section 4). All rows start with 2 bits. The upgrade, from 2 to 4
// bits or from 4 to 8, that lowers the variance most per bit comes first. AdaQP solves an
// integer program for groups of rows every few epochs instead, and sends the result to the
// receivers. Here the number of bits is sent with each row.
//
// A row's bits depend only on the rows of its block.
//
// The payload of a block:
//
//	2 bits a row    0, 1, 2 or 3 for codes of 0, 2, 4 or 8 bits, low bits first
//	2 bytes a row   offsets, as uniform's
//	2 bytes a row   steps; NaN: the row is sent raw
//	codes           cols·bits/8 bytes a row, rounded up
//	16 bytes        zero
//	raw rows        4·cols bytes each, in order
type adaptive struct {
	budget  int       // bits an element, 2 to 8
	scratch sync.Pool // of *shares
}

const (
	defaultBudget = 4
	leastBudget   = 2
	mostBudget    = 8
)

func newAdaptive(budget int) Codec {
	a := &adaptive{budget: budget}
	a.scratch.New = func() any { return new(bitBudget) }
	return a
}

func (a *adaptive) ID() ID         { return ID{Codec: idAdaptive, Param: byte(a.budget)} }
func (a *adaptive) Lossless() bool { return false }
func (a *adaptive) Name() string   { return withParameter("adaptive", a.budget, defaultBudget) }

func (a *adaptive) Size(rows, cols int) (int, bool) {
	// Codes are rounded up to bytes in each row.
	return (rows+3)/4 + rows*(gridBytes+1) + kernels.CodeBytes(rows*cols, a.budget) + kernels.CodeSlack, false
}

// bitsOf gives the bits an element of a row from its index in the payload.
var bitsOf = [...]int{0, 2, 4, 8}

func (a *adaptive) Encode(dst []byte, src Rows, k Key) []byte {
	s := a.scratch.Get().(*bitBudget)
	defer a.scratch.Put(s)
	s.measure(&src)
	s.share(a.budget*src.Len, src.Len)
	at, head := len(dst), (src.Len+3)/4
	size := head + src.Len*gridBytes + kernels.CodeSlack
	for _, w := range s.which {
		size += kernels.CodeBytes(src.Cols, bitsOf[w])
	}
	dst = slices.Grow(dst, size)[:at+size]
	which := dst[at : at+head]
	clear(which)
	grids, codes := splitGrids(dst[at+head:], src.Len)
	draws := newRoundings(k)
	raw := false
	for i, w := range s.which {
		which[i/4] |= w << (i % 4 * 2)
		g, bits := s.grid(i), bitsOf[w]
		grids.put(i, g)
		raw = raw || g.Step == rawStep
		if bits > 0 {
			draws.of(&src, i).Codes(codes, src.Row(i), g, bits, src.id(i))
			codes = codes[kernels.CodeBytes(src.Cols, bits):]
		}
	}
	clear(codes)
	if raw {
		dst = grids.appendRaw(dst, &src, 1)
	}
	return dst
}

func (a *adaptive) Decode(dst Rows, payload []byte, add bool) error {
	head := (dst.Len + 3) / 4
	size := head + dst.Len*gridBytes + kernels.CodeSlack
	if len(payload) < size {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	which := payload[:head]
	for i := range dst.Len {
		size += kernels.CodeBytes(dst.Cols, bitsOf[which[i/4]>>(i%4*2)&3])
	}
	grids, codes := splitGrids(payload[head:], dst.Len)
	if len(payload) != size+4*dst.Cols*grids.countRaw(dst.Len, 1) {
		return wrongLength(len(payload), dst.Len, dst.Cols)
	}
	raw := payload[size:]
	for i := range dst.Len {
		g, row, bits := grids.at(i), dst.Row(i), bitsOf[which[i/4]>>(i%4*2)&3]
		switch {
		case g.Step == rawStep:
			raw = takeRaw(row, raw, add)
		case bits == 0:
			setAll(row, g.Offset.Float32(), add)
		default:
			g.Values(row, codes, bits, add)
		}
		codes = codes[kernels.CodeBytes(dst.Cols, bits):]
	}
	return nil
}

// setAll sets, or adds v to, each element.
func setAll(row []float32, v float32, add bool) {
	for j := range row {
		if add {
			row[j] += v
		} else {
			row[j] = v
		}
	}
}

// bitBudget divides a budget of bits among the rows of a block. It is scratch memory.
type bitBudget struct {
	lo, hi []float32
	which  []byte // index of bitsOf
	raw    []bool
	costs  [gainLevels]int // bits of the upgrades of each level of gain
}

// gainLevels are the sixteenths of octaves of float32, by its exponent and the
// upper bits of its mantissa.
const (
	gainLevels = 1 << 12
	gainShift  = 31 - 12
)

// measure finds the extent of each row.
func (s *bitBudget) measure(src *Rows) {
	s.lo, s.hi = slices.Grow(s.lo[:0], src.Len)[:src.Len], slices.Grow(s.hi[:0], src.Len)[:src.Len]
	s.which, s.raw = slices.Grow(s.which[:0], src.Len)[:src.Len], slices.Grow(s.raw[:0], src.Len)[:src.Len]
	for i := range src.Len {
		lo, hi, finite := kernels.Extent(src.Row(i))
		g, ok := kernels.NewGrid(lo, hi, 2) // in more bits its step is smaller
		s.lo[i], s.hi[i], s.raw[i], s.which[i] = lo, hi, !finite || !ok, 0
		if !s.raw[i] && g.Step != 0 {
			s.which[i] = 1
		}
	}
}

// grid returns the grid of row i in its bits.
func (s *bitBudget) grid(i int) kernels.Grid {
	if s.raw[i] {
		return kernels.Grid{Step: rawStep}
	}
	g, _ := kernels.NewGrid(s.lo[i], s.hi[i], bitsOf[max(s.which[i], 1)])
	return g
}

// Square roots of the variance that an upgrade removes per bit, for a span of 1: from 2 to 4
// bits (1/3² - 1/15²)/2, from 4 to 8 (1/15² - 1/255²)/4.
var upgradeGain = [...]float32{
	1: float32(math.Sqrt((1.0/(3*3) - 1.0/(15*15)) / 2)),
	2: float32(math.Sqrt((1.0/(15*15) - 1.0/(255*255)) / 4)),
}

// level returns the gain level of row i's upgrade number which.
func (s *bitBudget) level(i int, which byte) int {
	return int(math.Float32bits((s.hi[i]-s.lo[i])*upgradeGain[which]) >> gainShift)
}

// share upgrades rows from 2 bits within budget, in bits for one column of all rows. Rows with
// the largest gain come first, equal ones in their order.
//
// Design note: gains are compared by level, which takes two passes over the
// rows; sorting them would take longer than rounding them.
func (s *bitBudget) share(budget, rows int) {
	clear(s.costs[:])
	for i := range rows {
		if s.which[i] == 1 {
			budget -= 2
			s.costs[s.level(i, 1)] += 2
			s.costs[s.level(i, 2)] += 4
		}
	}
	cut := gainLevels - 1
	for ; cut > 0 && s.costs[cut] <= budget; cut-- {
		budget -= s.costs[cut]
	}
	for i := range rows {
		for w := s.which[i]; w == 1 || w == 2; w++ {
			level, cost := s.level(i, w), 2*int(w)
			if level < cut || level == cut && cost > budget {
				break
			}
			if level == cut {
				budget -= cost
			}
			s.which[i] = w + 1
		}
	}
}
