package importers

import (
	"bytes"
	"math"
	"strings"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
)

type instant struct {
	micros      int64 // microseconds since 1970-01-01 00:00 UTC, rounded down
	clock, zone bool  // the cell has a time of day; and a time zone
}

// day is the length of a day in microseconds.
const day = 24 * 60 * 60 * 1_000_000

// compactDate is the format of dates such as 20240514. The other formats of numbers are the units
// of dateUnits.
const compactDate = "yyyymmdd"

// dateUnits are the units of numbers that count from 1970-01-01 00:00 UTC: one unit is
// micros/parts microseconds. Numbers below most are of the unit, if nothing else is known.
var dateUnits = []struct {
	name          string
	micros, parts int64
	most          float64
}{
	{"s", 1_000_000, 1, 1e11}, // until the year 5138
	{"ms", 1_000, 1, 1e14},
	{"us", 1, 1, 1e17},
	{"ns", 1, 1_000, math.Inf(1)},
	{"days", day, 1, 0},
}

// leastEpoch is the smallest maximum of a column of numbers that are read as dates without a
// known unit: 1973-03-03 in seconds. Years, ages and amounts are below.
const leastEpoch = 1e8

// unitOf returns the unit of numbers up to most, "" for numbers that are no dates.
func unitOf(most float64) string {
	if most >= leastEpoch {
		for _, u := range dateUnits {
			if most < u.most {
				return u.name
			}
		}
	}
	return ""
}

// readInstant reads a date in ISO 8601, or a number in the format of the column.
func readInstant(cell []byte, format string) (instant, bool) {
	if at, ok := readISO(cell); ok || format == "" {
		return at, ok
	}
	if format == compactDate {
		return readCompact(cell)
	}
	for _, u := range dateUnits {
		if u.name != format {
			continue
		}
		micros, ok := int64(0), false
		if n, whole := parseInt(cell); whole && math.Abs(float64(n)*float64(u.micros)) < math.MaxInt64/2 {
			micros, ok = floorDiv(n*u.micros, u.parts), true
		} else if x, number := number(cell); number {
			x = math.Floor(x * float64(u.micros) / float64(u.parts))
			micros, ok = int64(x), math.Abs(x) < math.MaxInt64/2
		}
		year := time.UnixMicro(micros).UTC().Year()
		return instant{micros: micros, clock: micros%day != 0}, ok && year >= 1 && year <= 9999
	}
	return instant{}, false
}

// readCompact reads a date of eight digits.
func readCompact(cell []byte) (instant, bool) {
	if len(cell) != len(compactDate) {
		return instant{}, false
	}
	t, err := time.Parse("20060102", string(cell))
	return instant{micros: t.UnixMicro()}, err == nil && t.Year() > 0
}

// zoneLayouts are the notations of time zones, after an optional blank.
var zoneLayouts = []string{"Z07:00", "Z0700", "Z07", "UTC"}

// readISO reads a date in ISO 8601, with or without a time of day and a time zone:
// 2024-05-14, 2024-05-14T13:22:10.5Z, 2024-05-14 13:22+02:00, 2024-05-14 13:22:10 UTC.
func readISO(cell []byte) (instant, bool) {
	if len(cell) < 10 || cell[4] != '-' || cell[7] != '-' { // most texts, without an error value
		return instant{}, false
	}
	const minutes, seconds = "2006-01-02T15:04", "2006-01-02T15:04:05"
	layout, text, zone := time.DateOnly, string(cell), ""
	if len(text) > len(layout) {
		// Package time also reads one digit of an hour, several blanks and a decimal comma.
		if len(text) < len(minutes) || text[13] != ':' || strings.Contains(text, ",") {
			return instant{}, false
		}
		if i := strings.IndexAny(text[11:], " Z+-"); i >= 0 {
			text, zone = text[:11+i], text[11+i:]
		}
		layout = seconds
		if text[10] == ' ' {
			layout = time.DateTime
		}
		if len(text) <= len(minutes) {
			layout = layout[:len(minutes)]
		}
	}
	t, err := time.Parse(layout, text)
	offset, ok := readZone(strings.TrimSpace(zone))
	at := instant{micros: t.UnixMicro() - offset, clock: len(cell) > 10, zone: zone != ""}
	return at, err == nil && t.Year() > 0 && (ok || !at.zone)
}

// readZone returns the offset of a time zone east of UTC, in microseconds.
func readZone(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	for _, layout := range zoneLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			_, offset := t.Zone()
			// Package time also reads offsets of 24 hours and of 60 minutes.
			return int64(offset) * 1_000_000, max(offset, -offset) < 24*3600 && !strings.HasSuffix(text, "60")
		}
	}
	return 0, false
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Features of a date: the standardised days since 1970, then sine and cosine of the time of
// year, of the day of the week and, if the column has one, of the time of day. Thus December
// is next to January.
const (
	dateFeatures  = 5
	clockFeatures = 7
)

func (at instant) days() float64 { return float64(at.micros) / day }

// phases returns the elapsed fractions of the year, the week and the day, from 0 to 1.
func (at instant) phases() [3]float64 {
	const year = 365.2425 // days, on average
	whole := floorDiv(at.micros, day)
	_, ofYear := math.Modf(at.days() / year)
	weekday := float64((whole%7 + 7 + 3) % 7) // from Monday; day 0 was a Thursday
	return [3]float64{ofYear, weekday / 7, float64(at.micros-whole*day) / day}
}

// String returns the instant in ISO 8601.
func (at instant) String() string {
	t := time.UnixMicro(at.micros).UTC()
	if at.micros%day == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04:05.999999Z")
}

// writeDates is the remedy for dates in notations that are not read.
const writeDates = "write dates as 2024-05-14 or 2024-05-14T13:22:10Z, and leave missing ones empty"

// dateProfile has the statistics of one pass over a column's dates.
type dateProfile struct {
	unit         string // of the file, "" if unknown
	dates        gap    // cells that are dates, by notation or unit
	local, zoned gap    // dates with a time of day: without a time zone, with a time zone
	clock        bool   // some dates have a time of day
	numbers      gap    // cells that are numbers, and dates only on request
	compact      int64  // numbers before the first one that is not a date of eight digits
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
	if d.compact == d.numbers.count-1 { // all numbers so far; each failure of package time costs an error value
		if _, ok := readCompact(cell); ok {
			d.compact++
		}
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
		return "", t.fault(d.numbers.at, column, d.numbers.value, "is a number, but %d other cells are dates such as %s",
			d.dates.count, d.dates.value).
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
		return "", t.fault(d.numbers.at, column, d.numbers.value, "is not a date: numeric dates are as 20240514, or seconds, ms, µs or ns "+
			"since 1970, the largest of a column at least %.0f", float64(leastEpoch)).
			Then("write dates as 2024-05-14, or leave the column out of --dates")
	}
	return format, nil
}

// looksLikeDate reports whether a text may be a date in an unsupported notation: three numbers
// between points, slashes or dashes.
func looksLikeDate(text []byte) bool {
	if word, _, _ := bytes.Cut(text, []byte{' '}); len(word) >= 6 && len(word) <= 10 {
		parts := bytes.FieldsFunc(word, func(r rune) bool { return r == '.' || r == '/' || r == '-' })
		return len(parts) == 3 && len(bytes.Trim(bytes.Join(parts, nil), "0123456789")) == 0
	}
	return false
}

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

// warnOfCodes warns of numbers that are probably codes, or in another unit of time.
func (im *tableImport) warnOfCodes() {
	for _, e := range im.columns {
		if im.like != nil {
			return
		}
		p := im.profiles[e.at]
		switch d := &p.dates; {
		case e.Kind == graph.DateColumn && d.leastCell.count > 0 && e.Format != compactDate && unitOf(d.least) != e.Format:
			read, _ := readInstant(d.leastCell.value, e.Format)
			im.Log("warning: column=%s: %s in %s %d is read as %s since 1970, which is %s: the largest cell determines the unit of all "+
				"cells", e.Name, d.leastCell.value, im.nodes.unit, d.leastCell.at, e.Format, read)
		case e.Kind != graph.NumberColumn:
		case p.codes.count > 0:
			im.Log("warning: column=%s has numbers with leading zeros, such as %s, which look like codes: use --categories %s for one "+
				"feature per code, or --hash %s for 64 hashed features", e.Name, p.codes.value, e.Name, e.Name)
		case p.dates.numbers.count > 0 && p.dates.compact == p.dates.numbers.count:
			im.Log("warning: column=%s has numbers such as %s, which look like dates: use --dates %s for date features", e.Name,
				p.dates.numbers.value, e.Name)
		}
	}
}
