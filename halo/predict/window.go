package predict

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/internal/catalog"
)

// Uncompressed is the value of --predict-history without compression.
const Uncompressed = "none"

// mostDecimals is the largest P of the codec polyline:P.
const mostDecimals = 9

// addedError is the largest root mean square of the rounding error with --predict-history auto, as a
// fraction of that of the change since the rows before.
const addedError = 0.01

// Histories describes all values of --predict-history.
func Histories() []catalog.Entry {
	return catalog.Entries([]catalog.Entry{
		{Name: Uncompressed, Help: "as they are"},
		{Name: "polyline", Form: "polyline:P", Help: "with P decimals, 0 to 9, in the codec polyline (SAT, section V-D)"},
		{Name: "auto", Help: "the codec polyline with the fewest decimals whose rounding error is below 1 % of the change since the rows before"},
	}, nil)
}

// HistoryUsage lists the values of --predict-history.
func HistoryUsage() string { return catalog.List(catalog.Forms(Histories()), "or") }

// ValidHistory reports whether name is a value of --predict-history.
func ValidHistory(name string) bool { _, ok := decimalsOf(name); return ok }

// decimalsOf returns the decimals of stored own rows, -1 if they are chosen for each epoch.
func decimalsOf(history string) (p int, ok bool) {
	switch digits, is := strings.CutPrefix(history, "polyline:"); {
	case history == "", history == Uncompressed:
		return mostDecimals, true
	case history == "auto":
		return -1, true
	default:
		p, err := strconv.Atoi(digits)
		return p, is && err == nil && p >= 0 && p <= mostDecimals
	}
}

// Windows returns the number of epochs whose own rows a prediction stores.
func Windows(kindName string, t refresh.Timing) int {
	age := t.MaxAge
	if k, ok := catalog.Find(kinds, kindName); ok && k.previous {
		age += t.Interval
	}
	return age/t.Period + 1
}

// compression is the storage format of own rows of earlier epochs. Decoded rows stay equal if they
// are encoded again.
type compression struct {
	decimals int // -1: chosen for each epoch
	codecs   [mostDecimals + 1]codec.Codec
	buffer   []byte
}

// newCompression returns nil for the history Uncompressed.
func newCompression(history string) *compression {
	p, ok := decimalsOf(history)
	if !ok {
		panic("predict: unknown history")
	}
	if history == "" || history == Uncompressed {
		return nil
	}
	c := &compression{decimals: p}
	for p := range c.codecs {
		c.codecs[p], _ = codec.ByName("polyline:" + strconv.Itoa(p)) // never fails
	}
	return c
}

// block is own rows of an epoch, encoded with some decimals.
type block struct {
	data     []byte
	decimals int
}

// encode encodes rows of a width with p decimals into b.
func (c *compression) encode(b *block, rows []float32, width, p int) {
	c.buffer = c.codecs[p].Encode(c.buffer[:0], codec.Rows{X: rows, Cols: width, Len: len(rows) / width}, codec.Key{})
	if cap(b.data) < len(c.buffer) {
		b.data = make([]byte, len(c.buffer)) // without the spare capacity of append
	}
	b.data, b.decimals = b.data[:len(c.buffer)], p
	copy(b.data, c.buffer)
}

// decode decodes b. Only damaged memory makes it fail.
func (c *compression) decode(b *block, rows []float32, width int) {
	if err := c.codecs[b.decimals].Decode(codec.Rows{X: rows, Cols: width, Len: len(rows) / width}, b.data, false); err != nil {
		panic(err)
	}
}

// put encodes rows. before are the rows of the epoch before, nil if there are none.
func (c *compression) put(b *block, rows, before []float32, width int) {
	p := c.decimals
	if p < 0 {
		p = choose(rows, before)
	}
	c.encode(b, rows, width, p)
}

// restore encodes decoded rows again. It uses a buffer for as many.
func (c *compression) restore(b *block, rows, buffer []float32, width int) {
	if c.decimals >= 0 {
		c.encode(b, rows, width, c.decimals)
		return
	}
	for p := range c.codecs {
		c.encode(b, rows, width, p)
		if c.decode(b, buffer[:len(rows)], width); slices.Equal(buffer[:len(rows)], rows) {
			return
		}
	}
}

// choose returns the fewest decimals with an error of at most addedError of the change since before:
// 4 without rows before, and the most if no decimals suffice.
func choose(rows, before []float32) int {
	if before == nil {
		return 4
	}
	bound := addedError * addedError * distance(rows, before)
	for p := range mostDecimals {
		scale, sum := math.Pow10(p), 0.0
		for _, x := range rows {
			d := float64(x) - math.RoundToEven(float64(x)*scale)/scale
			if sum += d * d; !(sum <= bound) {
				break
			}
		}
		if sum <= bound {
			return p
		}
	}
	return mostDecimals
}
