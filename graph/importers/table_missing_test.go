package importers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// TestMissingLabels: cells that have no value in one column have none in any, except in ids. The
// log counts them for labels, and --missing names other texts.
func TestMissingLabels(t *testing.T) {
	nodes := func(texts ...string) string {
		table := "id,label,x,colour\nNA,p,1,red\nb,q,2,red\nc,p,3,blue\nd,q,4,blue\n"
		for i, text := range texts {
			table += fmt.Sprintf("m%d,%s,5,%s\n", i, text, text)
		}
		return table
	}
	const edges = "src,dst\nNA,b\n"
	texts := []string{"", "NA", "nan", "None", "NULL", "N/A", "-", "?", "unknown", "Unknown", "#N/A"}
	got, err := importTable(t, nodes(texts...), edges, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Classes != 2 || slices.ContainsFunc(got.Labels[4:], func(l int32) bool { return l != graph.Unlabelled }) {
		t.Errorf("%d classes %q, labels %v", got.Classes, got.ClassNames, got.Labels)
	}
	for _, want := range []string{"warning: label=label: cells such as NA mean no label, vertices=10;",
		"column=colour kind=category features=2 missing=11"} {
		if !strings.Contains(got.log, want) {
			t.Errorf("no %q in\n%s", want, got.log)
		}
	}
	if id := got.IDs.At(0); id != "NA" {
		t.Errorf("the first id is %q", id)
	}
	other, err := importTable(t, nodes("none", "none", "gap", "GAP"), edges, Options{TableOptions: TableOptions{Missing: []string{"gap"}}})
	if err != nil || !slices.Equal(other.ClassNames, []string{"none", "p", "q"}) || !slices.Equal(other.Labels[4:], []int32{0, 0, -1, -1}) {
		t.Errorf("--missing gap: %v, classes %q, labels %v", err, other.ClassNames, other.Labels)
	}
}

// TestMissingInSchema: --like takes the texts of missing cells over. A schema without a list keeps
// its categories and classes that look like missing cells.
func TestMissingInSchema(t *testing.T) {
	table := func(o Options) (*graph.Dataset, string) {
		o.Src = files(t, map[string][]byte{
			"nodes.csv": []byte("id,label,x\na,?,?\nb,q,red\nc,?,?\nd,q,red\ne,q,red\nf,NA,NA\n"), "edges.csv": []byte("src,dst\na,b\n")})
		return written(t, "csv", o)
	}
	model, _ := table(Options{TableOptions: TableOptions{Missing: []string{"?"}}})
	again, _ := table(Options{TableOptions: TableOptions{Like: model.Dir}})
	if !slices.Equal(again.Labels, model.Labels) || !slices.Equal(spread(again.Features), spread(model.Features)) {
		t.Errorf("labels %v and features %v, want %v and %v", again.Labels, spread(again.Features), model.Labels, spread(model.Features))
	}
	old := model.Meta.Schema()
	earlier := *old.Table
	earlier.Missing, old.Table = nil, &earlier
	from, _ := table(Options{TableOptions: TableOptions{Like: "earlier"}, Schema: old})
	if from.Labels[5] != model.Labels[5] || from.Labels[5] < 0 {
		t.Errorf("the class NA of an earlier version became %d", from.Labels[5])
	}
}
