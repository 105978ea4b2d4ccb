package catalog_test

import (
	"slices"
	"testing"

	"siafu/internal/catalog"
)

func TestTable(t *testing.T) {
	table := []catalog.Entry{{Name: "a"}, {Name: "b", Form: "b:N"}, {Name: "c"}}
	if e, ok := catalog.Find(table, "b"); !ok || e.Form != "b:N" {
		t.Errorf("found %v, %t", e, ok)
	}
	if _, ok := catalog.Find(table, "b:N"); ok {
		t.Error("a form is found as a name")
	}
	list := catalog.Entries(table, func(e catalog.Entry) bool { return e.Name != "c" })
	if got := catalog.Forms(list); !slices.Equal(got, []string{"a", "b:N"}) || !slices.Equal(catalog.Names(list), []string{"a", "b"}) {
		t.Errorf("forms %q, names %q", got, catalog.Names(list))
	}
	for n, want := range []string{"", "a", "a or b", "a, b or c"} {
		if got := catalog.List(catalog.Names(table[:n]), "or"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
