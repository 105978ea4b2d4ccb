package codec_test

import (
	"math"
	"slices"
	"testing"

	"siafu/halo/codec"
	"siafu/kernels"
)

// decoded returns src encoded and decoded.
func decoded(t *testing.T, c codec.Codec, src codec.Rows, k codec.Key) []float32 {
	t.Helper()
	got := make([]float32, src.Len*src.Cols)
	if err := c.Decode(codec.Rows{X: got, Cols: src.Cols, Len: src.Len}, c.Encode(nil, src, k), false); err != nil {
		t.Fatal(err)
	}
	return got
}

// Stochastic codecs are unbiased: the mean over many epochs is within five standard errors.
// The variance of an element is at most a quarter of a step squared.
func TestUnbiased(t *testing.T) {
	for _, cols := range []int{33, 10} { // one grid per row, and one for four rows
		checkUnbiased(t, cols)
	}
}

func checkUnbiased(t *testing.T, cols int) {
	const rows, epochs = 6, 2000
	x := noise(rows*cols, 3)
	src := codec.Rows{X: x, Cols: cols, Len: rows}
	for name, steps := range map[string]float64{"int8": 255, "int4": 15, "int2": 3, "adaptive:3": 3} {
		c, sums := named(t, name), make([]float64, len(x))
		for epoch := range epochs {
			for i, v := range decoded(t, c, src, codec.Key{Seed: 5, Epoch: epoch}) {
				sums[i] += float64(v)
			}
		}
		for i, sum := range sums {
			most := step(sharing(name, src, i/cols), steps) * (5*math.Sqrt(0.25/epochs) + 1.0/(1<<14))
			if d := math.Abs(sum/epochs - float64(x[i])); d > most {
				t.Errorf("%s: %v is %v on average, %v off at most", name, x[i], sum/epochs, most)
			}
		}
	}
}

// rowsOfManySpans returns rows whose spans differ by up to 2¹².
func rowsOfManySpans(rows, cols int) codec.Rows {
	x := noise(rows*cols, 4)
	for i := range x {
		x[i] *= float32(math.Exp2(-float64(i / cols * 7 % 13)))
	}
	return codec.Rows{X: x, Cols: cols, Len: rows}
}

// "Bits go where they lower the variance most" (AdaQP, section 4): within the
// budget the squared error is far below that of the same bits for every row,
// and rows of a larger span never have fewer bits.
func TestAdaptiveSharesItsBudget(t *testing.T) {
	const rows, cols = 500, 64
	src := rowsOfManySpans(rows, cols)
	square := func(name string) (sum float64) {
		for i, v := range decoded(t, named(t, name), src, codec.Key{}) {
			sum += (float64(v) - float64(src.X[i])) * (float64(v) - float64(src.X[i]))
		}
		return sum
	}
	if a, u := square("adaptive"), square("int4"); a > u/2 {
		t.Errorf("squared error %v with adaptive bits, %v with 4 for every row", a, u)
	}
	for _, budget := range []int{2, 3, 4, 5, 6, 7, 8} {
		payload := named(t, "adaptive:"+string(rune('0'+budget))).Encode(nil, src, codec.Key{})
		total, bits := 0, make([]int, rows)
		for i := range bits {
			bits[i] = []int{0, 2, 4, 8}[payload[i/4]>>(i%4*2)&3]
			total += bits[i]
		}
		if total > budget*rows || total < budget*rows-8 {
			t.Errorf("%d bits a column of %d rows for a budget of %d", total, rows, budget*rows)
		}
		for i := range rows {
			for j := range rows {
				si, sj := slices.Max(src.Row(i))-slices.Min(src.Row(i)), slices.Max(src.Row(j))-slices.Min(src.Row(j))
				if si > 1.1*sj && bits[i] < bits[j] {
					t.Fatalf("budget %d: %d bits for a span of %v, %d for %v", budget, bits[i], si, bits[j], sj)
				}
			}
		}
	}
}

// Constant rows leave their bits to the others.
func TestAdaptiveSkipsConstantRows(t *testing.T) {
	src := rowsOfManySpans(100, 32)
	for i := range 75 {
		for j := range src.Row(i) {
			src.Row(i)[j] = 1.5
		}
	}
	payload := named(t, "adaptive:2").Encode(nil, src, codec.Key{})
	for i := range 100 {
		if which := payload[i/4] >> (i % 4 * 2) & 3; (i < 75) != (which == 0) || i >= 75 && which != 3 {
			t.Errorf("row %d has bits of kind %d", i, which)
		}
	}
}

// The example of the algorithm's description: its points, the latitudes in one
// row and the longitudes in the other, and its groups with 63 added.
func TestPolylineKnownAnswer(t *testing.T) {
	src := codec.Rows{X: []float32{38.5, 40.7, 43.252, -120.2, -120.95, -126.453}, Cols: 3, Len: 2}
	payload := named(t, "polyline:5").Encode(nil, src, codec.Key{})
	var text []byte
	acc, n := 0, 0
	for _, b := range payload[1:] {
		acc |= int(b) << n
		for n += 8; n >= 6; n -= 6 {
			text = append(text, byte(acc&63+63))
			acc >>= 6
		}
	}
	if got, want := string(text), "_p~iF_ulL_mqN~ps|UnnqCvxq`@"; got[:len(want)] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// With error feedback, the sum of received rows stays within one error of the sum of intended
// rows after any number of epochs. Without it, a codec that rounds to nearest drifts.
func TestFeedback(t *testing.T) {
	const rows, cols, epochs = 5, 9, 200
	x := noise(rows*cols, 8)
	src := codec.Rows{X: x, Cols: cols, Len: rows}
	for name, most := range map[string]float64{"polyline:1": 0.06, "bf16": 1.0 / (1 << 8), "int4": 0.3, "int2+zstd": 2} {
		c, lost := named(t, name), make(codec.Feedback, len(x))
		with, without := make([]float64, len(x)), make([]float64, len(x))
		for epoch := range epochs {
			k := codec.Key{Epoch: epoch}
			block, err := codec.Open(codec.EncodeBlock(nil, c, src, 0, k, lost), c)
			got := make([]float32, len(x))
			if err == nil {
				err = block.Decode(c, codec.Rows{X: got, Cols: cols, Len: rows}, false)
			}
			if err != nil {
				t.Fatal(err)
			}
			plain := decoded(t, c, src, k)
			for i, v := range got {
				with[i] += float64(v) - float64(x[i])
				without[i] += float64(plain[i]) - float64(x[i])
			}
		}
		worst := func(sums []float64) float64 { return max(slices.Max(sums), -slices.Min(sums)) }
		if worst(with) > most {
			t.Errorf("%s: %d rows are %v off in the sum, want at most %v", name, epochs, worst(with), most)
		}
		if name == "polyline:1" && worst(without) < 10*most {
			t.Errorf("%s without feedback is only %v off: the test shows nothing", name, worst(without))
		}
	}
}

// A row that was not finite has no effect on later ones.
func TestFeedbackForgetsInfinity(t *testing.T) {
	const cols = 33
	x, lost := noise(2*cols, 8), make(codec.Feedback, 2*cols)
	c := named(t, "int4")
	x[3] = float32(math.Inf(1))
	codec.EncodeBlock(nil, c, codec.Rows{X: x, Cols: cols, Len: 2}, 0, codec.Key{}, lost)
	if _, _, finite := kernels.Extent(lost); !finite || lost[0] != 0 || lost[cols] == 0 && lost[cols+1] == 0 {
		t.Errorf("lost: %v", lost)
	}
}
