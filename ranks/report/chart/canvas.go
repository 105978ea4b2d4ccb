package chart

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"
)

// canvas writes markup until the first error.
type canvas struct {
	w   io.Writer
	err error
}

// printf writes markup. It escapes arguments that are strings.
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

// raw writes constant markup without escaping.
func (c *canvas) raw(s string) {
	if c.err == nil {
		_, c.err = io.WriteString(c.w, s)
	}
}

// escape escapes a text for an element or a quoted attribute.
func escape(s string) string { return html.EscapeString(printable(s)) }

// printable replaces the control characters of a text, because XML cannot represent them.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// Shorten returns a text of at most max(length, 9) characters. It replaces the middle of a longer
// text with an ellipsis.
func Shorten(s string, length int) string {
	r := []rune(s)
	if len(r) <= length {
		return s
	}
	length = max(length, 9)
	return string(r[:length/2]) + "…" + string(r[len(r)-(length-1)/2:])
}
