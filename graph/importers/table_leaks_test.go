package importers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// TestLeaks: columns that number the rows, in any order, and columns that alone determine the label
// cause a warning. --drop leaves them out. Other columns, and columns that --features names, cause
// none.
func TestLeaks(t *testing.T) {
	const rows = 40
	number := func(f func(v int) int) func(v int) string { return func(v int) string { return fmt.Sprint(f(v)) } }
	for _, c := range []struct {
		name string
		cell func(v int) string
		want string
	}{
		{"running", number(func(v int) int { return v }), "numbers the rows, from 0 to 39"},
		{"with gaps", number(func(v int) int { return 3*v + v%2 }), "numbers the rows, from 0 to 118"},
		{"falling", number(func(v int) int { return -v }), "numbers the rows, from -39 to 0"},
		{"permuted", number(func(v int) int { return 1 + v*17%rows }), "numbers the rows, from 1 to 40"},
		{"separating", func(v int) string { return fmt.Sprintf("%.2f", float64(v%2)+float64(v*7%10)/20) }, "alone determines the label"},
		{"category", func(v int) string { return [...]string{"lost", "paid"}[v%2] }, "alone determines the label"},
		{"repeated", number(func(v int) int { return v * 17 % 39 }), ""},
		{"overlapping", func(v int) string { return fmt.Sprintf("%.2f", float64(v%2)/4+float64(v*7%10)/10) }, ""},
		{"mixed category", func(v int) string { return [...]string{"lost", "paid"}[v%20/10] }, ""},
	} {
		nodes := "id,label,noise,x\n"
		for v := range rows {
			nodes += fmt.Sprintf("v%d,%d,%d,%s\n", v, v%2, v*v%7, c.cell(v))
		}
		got, err := importTable(t, nodes, "src,dst\nv0,v1\n", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Contains(got.log, "warning: column=x "); found != (c.want != "") || !strings.Contains(got.log, c.want) {
			t.Errorf("%s: want %q, the log is\n%s", c.name, c.want, got.log)
		}
		for _, o := range []TableOptions{{Drop: []string{"x"}}, {Features: []string{"x"}}} {
			quiet, err := importTable(t, nodes, "src,dst\nv0,v1\n", Options{TableOptions: o})
			if err != nil || strings.Contains(quiet.log, "warning: column=x ") ||
				slices.ContainsFunc(quiet.Table.Columns, func(c graph.Column) bool { return c.Name == "x" }) != (o.Features != nil) {
				t.Errorf("%s with %+v: %v\n%s", c.name, o, err, quiet.log)
			}
		}
	}
}
