package ranks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/importers"
	"siafu/ranks/predictions"
)

// relationalTables writes a folder with papers, authors and venues. The papers have the ids 0 to n-1, the
// authors have the ids 0 to 9, and venues have no table.
func relationalTables(t *testing.T, papers int, labels bool) string {
	dir := t.TempDir()
	text := map[string]string{"nodes/paper.csv": "id,label,pages\n", "nodes/author.csv": "id,age\n",
		"edges/author__writes__paper.csv": "author,paper\n", "edges/paper__in__venue.csv": "paper,venue\n"}
	for v := range papers {
		label := ""
		if labels {
			label = []string{"blue", "green", "red"}[v%3]
		}
		text["nodes/paper.csv"] += fmt.Sprintf("%d,%s,%d\n", v, label, v%3)
		text["edges/author__writes__paper.csv"] += fmt.Sprintf("%d,%d\n", v%10, v)
		text["edges/paper__in__venue.csv"] += fmt.Sprintf("%d,v%d\n", v, v%3)
	}
	for v := range 10 {
		text["nodes/author.csv"] += fmt.Sprintf("%d,%d\n", v, 20+v)
	}
	for name, content := range text {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPredictRelational: predictions of a relational graph are those of the kinds with labels, with a column
// for the kind. New vertices are those whose ids are new within their kind.
func TestPredictRelational(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "papers")
	o := importers.Options{Src: relationalTables(t, 30, true), Dst: data, TableOptions: importers.TableOptions{Standardise: true}}
	if _, err := importers.Import("auto", o); err != nil {
		t.Fatal(err)
	}
	c := quick(t)
	train(t, c, data)
	p := PredictConfig{Ranks: 2, CSV: true, ByClass: true, Parquet: true, StallWarn: "1m", StallAbort: "1m"}
	var said strings.Builder
	if err := Predict(context.Background(), p, c.Out, data, IO{Out: &said, Err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.Out, "predictions")
	rows := readCSV(t, filepath.Join(dir, predictions.CSVFile))
	if len(rows) != 30 || !strings.Contains(said.String(), " written=30") {
		t.Errorf("%d rows; said %s", len(rows), &said)
	}
	for v, row := range rows {
		if row[0] != "paper" || row[1] != fmt.Sprint(v) || row[3] != []string{"blue", "green", "red"}[v%3] {
			t.Errorf("row %d is %v", v, row)
		}
	}
	sameTables(t, filepath.Join(dir, predictions.CSVFile), filepath.Join(dir, predictions.ParquetFile),
		"kind,id,split,label,prediction,probability,p_blue,p_green,p_red")
	ids, err := os.ReadFile(filepath.Join(dir, predictions.IDFile))
	if err != nil || !strings.HasPrefix(string(ids), "paper:0\npaper:1\n") {
		t.Errorf("ids %.40q, %v", ids, err)
	}

	later := filepath.Join(t.TempDir(), "later")
	schema, err := Schema(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	o = importers.Options{Src: relationalTables(t, 33, false), Dst: later, Schema: schema,
		TableOptions: importers.TableOptions{Like: c.Out}}
	if _, err := importers.Import("auto", o); err != nil {
		t.Fatal(err)
	}
	p.New = true
	if err := Predict(context.Background(), p, c.Out, later, IO{Out: &said, Err: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	rows = readCSV(t, filepath.Join(c.Out, "predictions-later", predictions.CSVFile))
	if len(rows) != 3 || rows[0][0] != "paper" || rows[0][1] != "30" || rows[2][1] != "32" {
		t.Errorf("new rows %v", rows)
	}
	m, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	m.Relations.Kinds[0].Name = "writer"
	if err := schema.Fits("predict", data, m, graph.EdgeUse{Edges: true}); err == nil {
		t.Error("a model takes a dataset with another kind")
	}
}
