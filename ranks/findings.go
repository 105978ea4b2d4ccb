package ranks

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"siafu/internal/table"
)

// doctorReport is the doctor's output: one line per finding, or a JSON object at the end.
type doctorReport struct {
	out  io.Writer
	kept bool
	said map[string][]map[string]any // by the first word of a line
	err  error
}

// add adds a finding: a word, facts as pairs of a name and a value, and a note with the reason
// or the remedy. A line without a word is filed under the first name.
func (f *doctorReport) add(what, note string, facts ...any) {
	if !f.kept {
		if _, err := fmt.Fprintln(f.out, line(what, note, facts)); f.err == nil {
			f.err = err
		}
		return
	}
	about := map[string]any{}
	for k := 0; k < len(facts); k += 2 {
		about[facts[k].(string)] = facts[k+1]
	}
	if note != "" {
		about["note"] = note
	}
	if what == "" {
		what = facts[0].(string)
	}
	what, _, _ = strings.Cut(what, " ")
	if f.said == nil {
		f.said = map[string][]map[string]any{}
	}
	f.said[what] = append(f.said[what], about)
}

// end writes the JSON object.
func (f *doctorReport) end() error {
	if f.err != nil || !f.kept {
		return f.err
	}
	return table.JSON(f.out, f.said)
}

// line returns what, key=value for each fact, and the note after a colon. Values with spaces
// are quoted.
func line(what, note string, facts []any) string {
	words := []string{}
	if what != "" {
		words = append(words, what)
	}
	for k := 0; k < len(facts); k += 2 {
		v := fmt.Sprint(facts[k+1])
		if strings.ContainsAny(v, " \"") {
			v = strconv.Quote(v)
		}
		words = append(words, fmt.Sprintf("%s=%s", facts[k], v))
	}
	text := strings.Join(words, " ")
	if note != "" {
		text += ": " + note
	}
	return text
}
