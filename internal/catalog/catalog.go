// Package catalog describes the choices of a flag. Packages of codecs, refresh policies,
// partitioners and importers have one table each; parsing, help, completion, errors and
// documents use the table. A new choice is a value in a file of its own and a line in the
// table.
package catalog

import (
	"cmp"
	"strings"
)

// Entry names and describes a choice. Choice types embed it.
type Entry struct {
	Name string
	Form string // name and parameters, such as every:N[,LAG]; empty: Name
	Help string // a sentence in Markdown, without a full stop, with its source in parentheses
}

// Choice returns the entry with Form set.
func (e Entry) Choice() Entry {
	e.Form = cmp.Or(e.Form, e.Name)
	return e
}

// Choice is an element of a table.
type Choice interface{ Choice() Entry }

// Find returns the choice with a name, and whether the table has it.
func Find[T Choice](table []T, name string) (found T, ok bool) {
	for _, c := range table {
		if c.Choice().Name == name {
			return c, true
		}
	}
	return found, false
}

// Entries returns the entries of the choices that keep accepts, in the order of the table;
// nil accepts all.
func Entries[T Choice](table []T, keep func(T) bool) (list []Entry) {
	for _, c := range table {
		if keep == nil || keep(c) {
			list = append(list, c.Choice())
		}
	}
	return list
}

// Names returns the names of entries.
func Names(list []Entry) (names []string) {
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

// Forms returns the forms of entries.
func Forms(list []Entry) (forms []string) {
	for _, e := range list {
		forms = append(forms, e.Form)
	}
	return forms
}

// List joins words as "a, b" followed by a conjunction and the last word.
func List(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}
