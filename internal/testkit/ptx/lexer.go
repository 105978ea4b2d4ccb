package ptx

import (
	"fmt"
	"strings"
)

// token is a word, a number, a string or a sign, with its line. The last token is empty.
type token struct {
	text string
	line int
}

// Error is an error of loading a module: a line that is not PTX, or has an unknown
// instruction.
type Error struct {
	Module string
	Line   int
	Text   string // the line
	Detail string
}

func (e *Error) Error() string {
	return fmt.Sprintf("ptx: %s:%d: %s: %q", e.Module, e.Line, e.Detail, e.Text)
}

// wordByte reports whether c may be in a name. Opcodes, special registers and directives have
// dots.
func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '$' || c == '%' || c == '.'
}

// tokens cuts text up. Comments and white space separate.
func tokens(text string) ([]token, *Error) {
	var list []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		rest := text[i:]
		n := 1
		switch {
		case c == '\n':
			line++
		case c == ' ' || c == '\t' || c == '\r':
		case strings.HasPrefix(rest, "//"):
			n = until(rest, "\n", 0)
		case strings.HasPrefix(rest, "/*"):
			n = until(rest, "*/", 2)
			line += strings.Count(rest[:n], "\n")
		case c == '"':
			end := strings.IndexAny(rest[1:], "\"\n")
			if end < 0 || rest[1+end] == '\n' {
				return nil, &Error{Line: line, Detail: "a string without an end"}
			}
			n = end + 2
			list = append(list, token{rest[:n], line})
		case wordByte(c):
			for n < len(rest) && wordByte(rest[n]) {
				n++
			}
			list = append(list, token{rest[:n], line})
		default:
			list = append(list, token{rest[:1], line})
		}
		i += n
	}
	return append(list, token{"", line}), nil
}

// until returns the length of s up to end, or of all s, plus keep bytes of end.
func until(s, end string, keep int) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + keep
	}
	return len(s)
}
