package importers

import (
	"bytes"
	"math"

	"siafu/graph"
	"siafu/internal/fault"
)

// writeDates is the remedy for dates in notations that are not read.
const writeDates = "write dates as 2024-05-14 or 2024-05-14T13:22:10Z, and leave missing ones empty"

// dateProfile has the statistics of one pass over a column's dates.
type dateProfile struct {
	unit         string // of the file, "" if unknown
	dates        gap    // cells that are dates, by notation or unit
	local, zoned gap    // dates with a time of day: without a time zone, with a time zone
	clock        bool   // some dates have a time of day
	numbers      gap    // cells that are numbers, and dates only on request
	compact      int64  // numbers that are dates of eight digits
	largest      float64
	least        float64 // smallest number from leastEpoch on; its cell is leastCell
	leastCell    gap
	others       gap // all other cells
}

// add reads one cell, which may be the number x.
func (d *dateProfile) add(at int64, cell []byte, x float64, isNumber bool) {
	if isNumber && d.unit == "" {
		d.addNumber(at, cell, math.Abs(x))
		return
	}
	i, ok := readInstant(cell, d.unit)
	if !ok {
		d.others.add(at, cell)
		return
	}
	d.dates.add(at, cell)
	d.clock = d.clock || i.clock
	switch {
	case i.zone:
		d.zoned.add(at, cell)
	case i.clock && d.unit == "":
		d.local.add(at, cell)
	}
}

func (d *dateProfile) addNumber(at int64, cell []byte, x float64) {
	d.numbers.add(at, cell)
	d.largest = max(d.largest, x)
	if x >= leastEpoch && (d.leastCell.count == 0 || x < d.least) {
		d.least, d.leastCell = x, gap{}
		d.leastCell.add(at, cell)
	}
	if _, ok := readCompact(cell); ok {
		d.compact++
	}
}

// dateFormat returns the graph.Column.Format of a column of dates, or the reason why its cells
// are not dates in one notation.
func (p *profile) dateFormat(t *tableFile, column int) (format string, bad *fault.Error) {
	d := &p.dates
	switch {
	case d.others.count > 0:
		return "", t.fault(d.others.at, column, d.others.value, "is not a date").Then("%s", writeDates)
	case d.dates.count > 0 && d.numbers.count > 0:
		return "", t.fault(d.numbers.at, column, d.numbers.value, "is a number, but %d other cells are dates such as %s", d.dates.count, d.dates.value).
			Then("write all dates in one format")
	case d.zoned.count > 0 && d.local.count > 0:
		odd, others, has := &d.local, &d.zoned, "no time zone"
		if d.zoned.count < d.local.count {
			odd, others, has = &d.zoned, &d.local, "a time zone"
		}
		return "", t.fault(odd.at, column, odd.value, "has %s, unlike %d other cells such as %s", has, others.count, others.value).
			Then("write all times with a time zone, or all without")
	case d.numbers.count == 0:
		return "", nil
	case d.compact == d.numbers.count:
		return compactDate, nil
	}
	if format = unitOf(d.largest); format == "" {
		return "", t.fault(d.numbers.at, column, d.numbers.value, "is not a date: numeric dates are as 20240514, or seconds, ms, µs or ns since 1970, the largest of a column at least %.0f", float64(leastEpoch)).
			Then("write dates as 2024-05-14, or leave the column out of --dates")
	}
	return format, nil
}

// looksLikeDate reports whether a text may be a date in an unsupported notation: three numbers
// between points, slashes or dashes.
func looksLikeDate(text []byte) bool {
	if word, _, _ := bytes.Cut(text, []byte{' '}); len(word) >= 6 && len(word) <= 10 {
		parts := bytes.FieldsFunc(word, func(r rune) bool { return r == '.' || r == '/' || r == '-' })
		for _, p := range parts {
			if _, ok := digits(p, len(p)); !ok {
				return false
			}
		}
		return len(parts) == 3
	}
	return false
}

// dateWidth returns the number of features of a column of dates in a format.
func (p *profile) dateWidth(format string) int {
	if p.dates.clock || p.dates.numbers.count > 0 && format != compactDate {
		return clockFeatures
	}
	return dateFeatures
}

// putDate writes the features of a date: days, and sine and cosine of its phases.
func (e *encoder) putDate(i instant, r *featureRows) {
	r.put(e.First, (i.days()-e.Mean)/e.Scale)
	phases := i.phases()
	for k, phase := range phases[:(e.Width-1)/2] {
		sin, cos := math.Sincos(2 * math.Pi * phase)
		r.put(e.First+1+2*k, sin)
		r.put(e.First+2+2*k, cos)
	}
}

// settleDates sets mean and deviation from the training rows' days.
func (e *encoder) settleDates(t *tableFile) {
	m := e.counting
	t.require(m.n > 0, "leave the column out with --features", "%s: no training row has a date", t.called(e.at))
	e.standardise()
}

// dateInstant returns the point in time of a number of days since 1970, to a second.
func dateInstant(days float64) instant {
	return instant{micros: int64(math.Round(days*day/1e6)) * 1e6}
}

// sayCodes warns of numbers that are probably codes, or in another unit of time.
func (im *tableImport) sayCodes() {
	for _, e := range im.columns {
		if im.like != nil {
			return
		}
		p := im.profiles[e.at]
		switch d := &p.dates; {
		case e.Kind == graph.DateColumn && d.leastCell.count > 0 && e.Format != compactDate && unitOf(d.least) != e.Format:
			read, _ := readInstant(d.leastCell.value, e.Format)
			im.Log("warning: column=%s: %s in %s %d is read as %s since 1970, which is %s: the largest cell determines the unit of all cells", e.Name, d.leastCell.value, im.nodes.unit, d.leastCell.at, e.Format, read)
		case e.Kind != graph.NumberColumn:
		case p.codes.count > 0:
			im.Log("warning: column=%s has numbers with leading zeros, such as %s, which look like codes: use --categories %s for one feature per code, or --hash %s for 64 hashed features", e.Name, p.codes.value, e.Name, e.Name)
		case p.dates.numbers.count > 0 && p.dates.compact == p.dates.numbers.count:
			im.Log("warning: column=%s has numbers such as %s, which look like dates: use --dates %s for date features", e.Name, p.dates.numbers.value, e.Name)
		}
	}
}
