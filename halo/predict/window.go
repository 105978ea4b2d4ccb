package predict

import (
	"strconv"
	"strings"

	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/internal/catalog"
)

// Uncompressed is the value of --predict history=FORMAT without compression.
const Uncompressed = "none"

// mostDecimals is the largest P of the codec polyline:P.
const mostDecimals = 9

// addedError is the largest root mean square of the rounding error with --predict history=auto, as a
// fraction of that of the change of own rows during the least age of a ghost. A fit amplifies the error: with
// 0.01, predictions lose up to 1.6 % of the error of stale rows.
const addedError = 0.005

// Histories describes all values of --predict history=FORMAT.
func Histories() []catalog.Entry {
	return catalog.Entries([]catalog.Entry{
		{Name: Uncompressed, Help: "as they are"},
		{Name: "polyline", Form: "polyline:P", Help: "with P decimals, 0 to 9, in the codec polyline (SAT, section V-D)"},
		{Name: "auto",
			Help: "in units of the largest power of two with a rounding error below 0.5 % of the change of the rows during the " +
				"least age of a ghost, in groups of 3 bits and a continuation bit"},
	}, nil)
}

// HistoryUsage lists the values of --predict history=FORMAT.
func HistoryUsage() string { return catalog.List(catalog.Forms(Histories()), "or") }

// ValidHistory reports whether name is a value of --predict history=FORMAT.
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
func Windows(t refresh.Timing) int { return t.MaxAge/t.Period + 1 }

// leastAge returns the least age of a ghost that a prediction replaces.
func leastAge(t refresh.Timing) int { return max(t.MaxAge-t.Interval+1, 1) }

// compression is the storage format of own rows of earlier epochs. Decoded rows stay equal if they
// are encoded again.
type compression struct {
	polyline codec.Codec // nil: units, chosen for each epoch
	leastAge int         // epochs whose change bounds the error of units
	buffer   []byte
}

// newCompression returns nil for the history Uncompressed.
func newCompression(history string, t refresh.Timing) *compression {
	p, ok := decimalsOf(history)
	if !ok {
		panic("predict: unknown history")
	}
	if history == "" || history == Uncompressed {
		return nil
	}
	c := &compression{leastAge: leastAge(t)}
	if p >= 0 {
		c.polyline, _ = codec.ByName("polyline:" + strconv.Itoa(p)) // never fails
	}
	return c
}

// before returns the index of the newest of epochs that is at least the least age older than an epoch,
// -1 if there is none or if the error has no bound.
func (c *compression) before(epochs []int32, epoch int) int {
	newest := -1
	if c == nil || c.polyline != nil {
		return newest
	}
	for k, e := range epochs {
		if e > 0 && int(e) <= epoch-c.leastAge && (newest < 0 || e > epochs[newest]) {
			newest = k
		}
	}
	return newest
}

// block is encoded own rows of an epoch.
type block struct {
	data []byte
	unit int // with units: the exponent of the power of two
}

// set copies the encoded rows in the buffer to b.
func (c *compression) set(b *block) {
	if n := len(c.buffer); cap(b.data) < n || cap(b.data) > n+n/8 {
		b.data = make([]byte, n) // without the spare capacity of append
	}
	b.data = b.data[:len(c.buffer)]
	copy(b.data, c.buffer)
}

// decode decodes b. Only damaged memory makes it fail.
func (c *compression) decode(b *block, rows []float32, width int) {
	if c.polyline == nil {
		decodeUnits(rows, b.data, b.unit)
		return
	}
	if err := c.polyline.Decode(codec.Rows{X: rows, Cols: width, Len: len(rows) / width}, b.data, false); err != nil {
		panic(err)
	}
}

// put encodes rows of a width. before are rows whose distance bounds the error, nil if there are none.
func (c *compression) put(b *block, rows, before []float32, width int) {
	switch {
	case c.polyline != nil:
		c.buffer = c.polyline.Encode(c.buffer[:0], codec.Rows{X: rows, Cols: width, Len: len(rows) / width}, codec.Key{})
	case before == nil:
		b.unit = firstUnit
		c.buffer = encodeUnits(c.buffer[:0], rows, b.unit)
	default:
		b.unit = chooseUnit(rows, addedError*addedError*distance(rows, before))
		c.buffer = encodeUnits(c.buffer[:0], rows, b.unit)
	}
	c.set(b)
}

// restore encodes decoded rows again, without a further error.
func (c *compression) restore(b *block, rows []float32, width int) {
	if c.polyline != nil {
		c.put(b, rows, nil, width)
		return
	}
	b.unit = chooseUnit(rows, 0)
	c.buffer = encodeUnits(c.buffer[:0], rows, b.unit)
	c.set(b)
}
