package graph

import (
	"regexp"
	"strings"
)

// formula matches a cell that a spreadsheet program may evaluate, after any apostrophes. plain
// matches a number.
var (
	formula = regexp.MustCompile(`^'*[=+\-@\t\r]`)
	plain   = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// isFormula reports whether a cell must be guarded.
func isFormula(text string) bool { return formula.MatchString(text) && !plain.MatchString(text) }

// GuardCell puts an apostrophe before a text that begins with =, +, -, @, a tab or a carriage
// return. Spreadsheet programs then show the text instead of evaluating it (OWASP, "CSV
// Injection"). GuardCell does not change numbers. UnguardCell reverses it.
func GuardCell(text string) string {
	if text == "" || !isFormula(text) {
		return text
	}
	return "'" + text
}

// UnguardCell removes the apostrophe that GuardCell added.
func UnguardCell(text string) string {
	if rest, found := strings.CutPrefix(text, "'"); found && isFormula(rest) {
		return rest
	}
	return text
}
