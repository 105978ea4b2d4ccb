package table

import (
	"strings"
	"testing"
)

func sample(make func(columns ...string) *Table) *Table {
	t := make("name", "share|%.1f %%", "Größe", "note")
	t.Add("größer", 12.345, 7, "")
	t.Add("a,b|<c>", "-", 12345678)
	return t
}

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(*strings.Builder) error
		want  string
	}{
		{"left", func(b *strings.Builder) error { return sample(Left).Text(b) },
			"name     share   Größe     note\ngrößer   12.3 %  7\na,b|<c>  -       12345678\n"},
		{"right", func(b *strings.Builder) error { return sample(Right).Text(b) },
			"     name   share     Größe  note\n   größer  12.3 %         7\n  a,b|<c>       -  12345678\n"},
		{"CSV", func(b *strings.Builder) error { return sample(Left).Select("share", "name").CSV(b) },
			"share,name\n12.3 %,größer\n-,\"a,b|<c>\"\n"},
		{"Markdown", func(b *strings.Builder) error { return sample(Left).Select("name", "share").Markdown(b) },
			"| name | share |\n| --- | --- |\n| größer | 12.3 % |\n| a,b\\|&lt;c> | - |\n"},
		{"JSON", func(b *strings.Builder) error { return JSON(b, []struct{ A int }{{1}}) }, "[\n  {\n    \"A\": 1\n  }\n]\n"},
		{"no columns", func(b *strings.Builder) error { return Left().Text(b) }, "\n"},
	} {
		var b strings.Builder
		if err := c.write(&b); err != nil || b.String() != c.want {
			t.Errorf("%s, %v:\n%q\n%q", c.name, err, b.String(), c.want)
		}
	}
}

// A cell with line breaks or tabs, such as a name, leaves the table as it is.
func TestControlCharacters(t *testing.T) {
	var b strings.Builder
	a := Left("name", "n")
	a.Add("a\tb\nc", 1)
	if err := a.Text(&b); err != nil || b.String() != "name   n\na b c  1\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

// The width is that of the longest line, with which reports choose the columns that fit.
func TestWidth(t *testing.T) {
	var b strings.Builder
	a := sample(Left)
	a.Rows = a.Rows[:1]
	a.Add("größer", 12.345, 7, "noted")
	_, width := a.Widths()
	if err := a.Text(&b); err != nil || len([]rune(strings.Split(b.String(), "\n")[2])) != width {
		t.Errorf("%v, %d:\n%s", err, width, b.String())
	}
}
