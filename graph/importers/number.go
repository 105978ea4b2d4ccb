package importers

import (
	"bytes"
	"math"
	"strconv"
)

// nextLine splits the first line, without its end, from text.
func nextLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), rest
}

// nextField splits the first comma-separated field from a line; ok reports whether there was one.
func nextField(line []byte) (field, rest []byte, ok bool) {
	if line == nil {
		return nil, nil, false
	}
	end := bytes.IndexByte(line, ',')
	if end < 0 {
		return bytes.TrimSpace(line), nil, true
	}
	return bytes.TrimSpace(line[:end]), line[end+1:], true
}

// parseInt reads a whole decimal number of 64 bits.
func parseInt(b []byte) (int64, bool) {
	digits, negative := b, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		digits, negative = b[1:], b[0] == '-'
	}
	if len(digits) == 0 || len(digits) > 18 {
		// Rare: numbers that may overflow, and invalid ones.
		v, err := strconv.ParseInt(string(b), 10, 64)
		return v, err == nil
	}
	var v int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}

// tens has the powers of ten that are exact in float64.
var tens = [23]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseFloat reads a decimal number, or an infinity or NaN by strconv's names.
//
// Up to 2⁵³ for the digits and 10²² for the exponent, one multiplication or division of exact
// float64 values rounds correctly (Clinger 1990); the rest is left to strconv.
func parseFloat(b []byte) (float64, bool) {
	mantissa, exponent, ok := decimal(b)
	if !ok && bytes.ContainsAny(b, "_xX") {
		return 0, false // strconv reads 2024_01 and 0x1p3 as Go does
	}
	if !ok || mantissa > 1<<53 || exponent < -22 || exponent > 22 {
		v, err := strconv.ParseFloat(string(b), 64)
		return v, err == nil
	}
	v := float64(mantissa)
	if exponent < 0 {
		v /= tens[-exponent]
	} else {
		v *= tens[exponent]
	}
	if b[0] == '-' {
		v = -v // also -0
	}
	return v, true
}

// decimal splits [sign]digits[.digits][e[sign]digits] into digits and a power of ten. It fails
// for more than 18 digits and for everything else.
func decimal(b []byte) (mantissa uint64, exponent int, ok bool) {
	i, digits := 0, 0
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		i++
	}
	point := -1
	for ; i < len(b) && b[i] != 'e' && b[i] != 'E'; i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + uint64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = digits
		default:
			return 0, 0, false
		}
	}
	if digits == 0 || digits > 18 {
		return 0, 0, false
	}
	if point >= 0 {
		exponent = point - digits
	}
	if i < len(b) {
		e, ok := parseInt(b[i+1:])
		if !ok || e < -math.MaxInt16 || e > math.MaxInt16 {
			return 0, 0, false
		}
		exponent += int(e)
	}
	return mantissa, exponent, true
}

// plainNumber returns a whole number without point and exponent, which pandas writes in
// columns with missing values: 7 for 7.0. Other texts, and numbers with leading zeros,
// which are codes, are returned as they are.
func plainNumber(b []byte) string {
	x, ok := number(b)
	if !ok || x != math.Trunc(x) || math.Abs(x) >= 1<<53 || hasLeadingZero(b) {
		return string(b)
	}
	return strconv.FormatInt(int64(x), 10)
}

// hasLeadingZero reports whether a number has a digit after a leading zero.
func hasLeadingZero(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	return len(b) > 1 && b[0] == '0' && b[1] >= '0' && b[1] <= '9'
}
