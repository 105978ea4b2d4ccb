package chart

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"
)

// canvas writes elements until the first error. Texts are escaped, as all that is put
// into a canvas is.
type canvas struct {
	w   io.Writer
	err error
}

// printf writes markup; arguments that are strings are escaped.
func (c *canvas) printf(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = escape(s)
		}
	}
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.w, format, args...)
	}
}

// raw writes markup that is a constant of ours.
func (c *canvas) raw(s string) {
	if c.err == nil {
		_, c.err = io.WriteString(c.w, s)
	}
}

// escape makes a text fit for an element or a quoted attribute.
func escape(s string) string { return html.EscapeString(Printable(s)) }

// Printable returns a text without control characters, which XML has no way to write.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// short cuts a text in its middle.
func short(s string, length int) string {
	r := []rune(s)
	if len(r) <= length {
		return s
	}
	half := max(length-1, 8) / 2
	return string(r[:half]) + "…" + string(r[len(r)-half:])
}
