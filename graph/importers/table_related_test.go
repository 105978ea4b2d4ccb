package importers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
	"siafu/internal/testkit/realdata"
)

// shop is a relational graph of tables: customers with labels, products, and brands without a table. A
// customer and a product have the same id.
func shop() map[string][]byte {
	return map[string][]byte{
		"nodes/customer.csv": []byte("id,label,split,age,note\n1,stays,train,20,\n2,leaves,train,40,\n" +
			"3,stays,val,60,\n4,leaves,test,30,\n"),
		"nodes/product.csv":                   []byte("sku,price,color\n1,5,red\nB,7,blue\nC,9,red\nD,1,blue\n"),
		"edges/customer__buys__product.csv":   []byte("customer,product\n1,1\n1,B\n2,C\n1,1\n"),
		"edges/customer__knows__customer.csv": []byte("src,dst\n1,2\n2,3\n4,4\n"),
		"edges/product__of__brand.csv.gz":     gz("product,brand\n1,acme\nB,zeta\nC,acme\n"),
	}
}

// namedEdges returns the edges of a relational dataset by the names of their ends and relations.
func namedEdges(ds *graph.Dataset) map[string]int {
	names, r := map[string]int{}, ds.Meta.Relations
	for v := range ds.In.Rows() {
		for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
			names[ds.VertexName(int(ds.In.Cols[i]))+" "+r.Relations[ds.Relations[i]].Name+" "+ds.VertexName(v)]++
		}
	}
	return names
}

// vertexRow returns the features of a vertex within the block of its kind, by the vertex's name.
func vertexRow(t *testing.T, ds *graph.Dataset, name string) []float32 {
	t.Helper()
	all, r := spread(ds.Features), ds.Meta.Relations
	for v := range ds.In.Rows() {
		if ds.VertexName(v) != name {
			continue
		}
		row, k := all[v*ds.Meta.FeatureDim:(v+1)*ds.Meta.FeatureDim], r.Kinds[r.KindOf(int64(v))]
		for c, x := range row {
			if x != 0 && (c < k.FirstFeature || c >= k.FirstFeature+k.Features) {
				t.Fatalf("%s has the feature %d outside of its kind's columns", name, c)
			}
		}
		return row[k.FirstFeature : k.FirstFeature+k.Features]
	}
	t.Fatalf("there is no vertex %s", name)
	return nil
}

// TestRelatedTables: the kinds, relations, features, labels and log of a small folder.
func TestRelatedTables(t *testing.T) {
	o := Options{Src: files(t, shop())}
	ds, log := written(t, "auto", o)
	edges := namedEdges(ds)
	for _, want := range []string{"customer:1 buys product:1", "customer:1 buys product:B", "customer:2 buys product:C",
		"product:1 rev_buys customer:1", "product:B rev_buys customer:1", "product:C rev_buys customer:2", "customer:1 knows customer:2",
		"customer:2 knows customer:3", "product:1 of brand:acme", "product:B of brand:zeta", "product:C of brand:acme",
		"brand:acme rev_of product:1", "brand:zeta rev_of product:B", "brand:acme rev_of product:C"} {
		if edges[want] != 1 {
			t.Errorf("edge %s occurs %d times", want, edges[want])
		}
		delete(edges, want)
	}
	if len(edges) > 0 {
		t.Errorf("further edges %v", edges)
	}
	for name, want := range map[string][]float32{"customer:3": {60, 1}, "product:1": {5, 0, 1, 1}, "product:D": {1, 1, 0, 1},
		"brand:acme": {1, 0, 1}, "brand:zeta": {0, 1, 1}} {
		if got := vertexRow(t, ds, name); !slices.Equal(got, want) {
			t.Errorf("%s has features %v, want %v", name, got, want)
		}
	}
	if !slices.Equal(ds.Labels, []int32{1, 0, 1, 0, -1, -1, -1, -1, -1, -1}) || !slices.Equal(ds.Split[:4], []uint8{1, 1, 2, 3}) ||
		ds.Meta.Relations.Kinds[0].Labels != 4 {
		t.Errorf("labels %v, split %v", ds.Labels, ds.Split)
	}
	for _, want := range []string{"kind=customer dropped column=note: it is empty", "relation=customer-buys-product reverse=true\n",
		"kind=brand features: one-hot ids, columns=2; vertices without a column, because they are new since training: 0",
		"kind=brand vertices=2 features: 2 features and a constant column\n",
		"kind=customer vertices=4 features: 1 features and a constant column; this kind has the labels\n",
		"relation=customer-knows-customer reverse=false: information flows in one direction only"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	want := "warning: kind brand has no table nodes/brand.csv: its vertices are the ids in its relations\n"
	if !strings.Contains(log, want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
	both := Options{Src: files(t, with(shop(), "edges/product__rev_buys__customer.csv", "a,b\nC,2\n"))}
	if a, _ := written(t, "auto", both); len(a.Meta.Relations.Relations) != 5 || namedEdges(a)["product:C rev_buys customer:2"] != 1 {
		t.Errorf("relations %v", a.Meta.Relations.Relations)
	}
	on := o
	on.ReverseRelations = "on"
	off := o
	off.ReverseRelations = "off"
	if a, _ := written(t, "csv", on); namedEdges(a)["customer:3 rev_knows customer:2"] != 1 || len(a.Meta.Relations.Relations) != 6 {
		t.Error("--reverse-relations on adds no reverse within a kind")
	}
	if a, _ := written(t, "csv", off); len(a.Meta.Relations.Relations) != 3 || a.Meta.Edges != 8 {
		t.Errorf("--reverse-relations off gives %d edges", a.Meta.Edges)
	}
}

// TestRelatedWarnings: kinds that are probably typing errors, and empty relations.
func TestRelatedWarnings(t *testing.T) {
	const table = "has no table nodes/%s.csv: its vertices are the ids in its relations; did you mean %s?"
	for _, c := range []struct{ file, text, want string }{
		{"edges/customers__likes__product.csv", "a,b\n1,1\n", "kind customers " + fmt.Sprintf(table, "customers", "customer")},
		{"edges/customer__likes__item.csv", "a,b\n1,B\n1,C\n", "kind item " + fmt.Sprintf(table, "item", "product")},
		{"edges/customer__likes__product.csv", "a,b\n", "relation customer-likes-product has no edges"},
	} {
		_, log := written(t, "csv", Options{Src: files(t, with(shop(), c.file, c.text))})
		if !strings.Contains(log, "warning: "+c.want) {
			t.Errorf("the log lacks %q:\n%s", c.want, log)
		}
		if strings.Contains(log, "kind customer has no table") || strings.Contains(log, "relation product-of-brand has no edges") {
			t.Errorf("wrong warnings:\n%s", log)
		}
	}
	_, log := written(t, "csv", Options{Src: files(t, with(shop(), "edges/customer__in__group.csv", "a,b\n1,1\n2,2\n"))})
	if !strings.Contains(log, "kind group has no table") || strings.Contains(log, "did you mean") { // numbers are ids of many kinds
		t.Error(log)
	}
	src := files(t, map[string][]byte{"nodes/customer.csv": shop()["nodes/customer.csv"]})
	if _, err := Import("auto", Options{Src: src, Dst: t.TempDir() + "/out"}); err == nil ||
		!strings.Contains(err.Error(), "none in a folder edges; write each relation as a table edges/FROM__RELATION__TO.csv") {
		t.Error(err)
	}
}

// randomTables returns tables of random kinds and relations, with the same columns for each seed but rows
// that depend on draw.
func randomTables(seed, draw uint64) (tables map[string][]byte, edges map[string]bool, o Options) {
	shape, r := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, draw))
	tables, edges = map[string][]byte{}, map[string]bool{}
	kinds := []string{"a", "b", "c", "d"}[:2+shape.IntN(3)]
	target, last := shape.IntN(len(kinds)-1), len(kinds)-1 // the last kind has no table
	counts := make([]int, len(kinds))
	for k, kind := range kinds {
		if counts[k] = 12 + r.IntN(20); k == last {
			continue
		}
		var b strings.Builder
		columns := shape.IntN(4)
		head := "id"
		for c := range columns {
			head += fmt.Sprintf(",x%d", c)
		}
		if k == target {
			head += ",label"
		}
		b.WriteString(head + "\n")
		for v := range counts[k] {
			fmt.Fprintf(&b, "%d", v)
			for c := range columns {
				if c%2 == 0 {
					fmt.Fprintf(&b, ",%.3f", r.NormFloat64())
				} else {
					fmt.Fprintf(&b, ",%s", []string{"p", "q", "r"}[v%3])
				}
			}
			if k == target {
				fmt.Fprintf(&b, ",class%d", v%2)
			}
			b.WriteString("\n")
		}
		tables["nodes/"+kind+".csv"] = []byte(b.String())
	}
	for i := range len(kinds) + shape.IntN(3) {
		from, to := i%len(kinds), shape.IntN(len(kinds))
		name := fmt.Sprintf("%s__r%d__%s", kinds[from], i, kinds[to])
		text := "u,v\n"
		for range 3 * counts[from] {
			u, v := r.IntN(counts[from]), r.IntN(counts[to])
			text += fmt.Sprintf("%d,%d\n", u, v)
			if from == to && u == v {
				continue
			}
			edges[fmt.Sprintf("%s:%d r%d %s:%d", kinds[from], u, i, kinds[to], v)] = true
			if from != to {
				edges[fmt.Sprintf("%s:%d rev_r%d %s:%d", kinds[to], v, i, kinds[from], u)] = true
			}
		}
		tables["edges/"+name+".csv"] = []byte(text)
	}
	o = Options{Seed: 1, TableOptions: TableOptions{Standardise: true, Featureless: []string{"auto", "mean", "none"}[shape.IntN(3)]}}
	return tables, edges, o
}

// TestRandomRelatedTables compares datasets with the tables' edges, and their features with those of the
// same table imported alone. New tables with --like get the same features as those of the training data.
func TestRandomRelatedTables(t *testing.T) {
	for seed := range uint64(5) {
		tables, edges, o := randomTables(seed, 1)
		o.Src = files(t, tables)
		ds, _ := written(t, "csv", o)
		have := namedEdges(ds)
		for name := range edges {
			if have[name] != 1 {
				t.Errorf("seed %d: edge %s occurs %d times", seed, name, have[name])
			}
		}
		if len(have) != len(edges) {
			t.Errorf("seed %d: %d edges, want %d", seed, len(have), len(edges))
		}
		for _, k := range ds.Meta.Relations.Kinds {
			text := string(tables["nodes/"+k.Name+".csv"])
			if !strings.Contains(text, ",x0") {
				continue
			}
			if k.Table.Label == "" { // scaled over all rows
				mean := 0.0
				for v := range int(k.Vertices) {
					mean += float64(vertexRow(t, ds, fmt.Sprintf("%s:%d", k.Name, v))[0]) / float64(k.Vertices)
				}
				if !(math.Abs(mean) < 1e-5) { // a few roundings of float32
					t.Errorf("seed %d: the mean of kind %s is %v after scaling", seed, k.Name, mean)
				}
				continue
			}
			alone, err := importTable(t, text, "src,dst\n", Options{Seed: o.Seed, TableOptions: TableOptions{Standardise: true}})
			if err != nil {
				t.Fatal(err)
			}
			for v := range int(k.Vertices) {
				got, want := vertexRow(t, ds, fmt.Sprintf("%s:%d", k.Name, v)), alone.dense[v*alone.Features.Dim:(v+1)*alone.Features.Dim]
				if dim := len(want); got[dim] != 1 || !slices.Equal(got[:dim], want) {
					t.Fatalf("seed %d: vertex %d of %s has features %v, want %v and 1", seed, v, k.Name, got, want)
				}
			}
		}
		same, _ := written(t, "csv", Options{Src: o.Src, TableOptions: TableOptions{Like: ds.Dir}})
		if !sameInput(ds, same) || refused(ds, same) {
			t.Errorf("seed %d: --like gives another input for the same tables", seed)
		}
		others, edges, _ := randomTables(seed, 2)
		later, _ := written(t, "csv", Options{Src: files(t, others), TableOptions: TableOptions{Like: ds.Dir}})
		if refused(ds, later) || len(namedEdges(later)) != len(edges) {
			t.Errorf("seed %d: a model of the first tables refuses later ones", seed)
		}
		without := maps.Clone(tables)
		delete(without, slices.Sorted(maps.Keys(tables))[0]) // a relation
		o = Options{Src: files(t, without), TableOptions: TableOptions{Like: ds.Dir}}
		if _, err := load(t, "csv", o); fault.KindOf(err) != fault.Usage {
			t.Errorf("seed %d: --like with a relation less: %v", seed, err)
		}
	}
}

// TestMeans compares the means of neighbours' features with their definition.
func TestMeans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	nodes, edges := "id,label,x,y\n", "paper,author\n"
	var x [40][2]float64
	for v := range x {
		x[v] = [2]float64{float64(r.IntN(9)), math.Round(r.NormFloat64() * 4)}
		nodes += fmt.Sprintf("%d,c%d,%g,%g\n", v, v%2, x[v][0], x[v][1])
	}
	sums, counts := map[int][2]float64{}, map[int]float64{}
	for range 100 {
		p, a := r.IntN(len(x)), r.IntN(12)
		edges += fmt.Sprintf("%d,%d\n", p, a)
		sums[a] = [2]float64{sums[a][0] + x[p][0], sums[a][1] + x[p][1]}
		counts[a]++
	}
	src := files(t, map[string][]byte{"nodes/paper.csv": []byte(nodes), "edges/paper__by__author.csv": []byte(edges)})
	ds, _ := written(t, "csv", Options{Src: src, TableOptions: TableOptions{Featureless: "mean"}})
	for a, n := range counts {
		row := vertexRow(t, ds, fmt.Sprintf("author:%d", a))
		for i, sum := range sums[a] {
			want := sum / n
			if len(row) != 3 || row[2] != 1 || math.Abs(float64(row[i])-want) > 1e-6*max(1, math.Abs(want)) { // rounding of float32
				t.Errorf("author %d has features %v, want the mean %v", a, row, want)
			}
		}
	}
	schema := ds.Meta.Schema()
	o := Options{Src: src, Schema: schema, TableOptions: TableOptions{Like: "damaged"}}
	if _, err := load(t, "csv", o); err != nil {
		t.Error(err)
	}
	schema.Relations.Kinds[1].Table.Columns[0].Name = "author" // which has no columns
	if _, err := load(t, "csv", o); err == nil || !strings.Contains(err.Error(), "means of kind author, which has no feature columns") {
		t.Errorf("damaged schema: %v", err)
	}
	for mode, dim := range map[string]int{"none": 1, "ids": 13} {
		ds, _ := written(t, "csv", Options{Src: src, TableOptions: TableOptions{Featureless: mode}})
		if got := ds.Meta.Relations.Kinds[1].Features; got != dim {
			t.Errorf("--featureless %s gives %d features, want %d", mode, got, dim)
		}
	}
}

// TestRelationColumn: one table of edges with a column of relations.
func TestRelationColumn(t *testing.T) {
	const nodes = "id,label,split,x\na,p,train,1\nb,q,val,2\nc,p,test,3\n"
	const edges = "src,dst,how\na,b,pays\nb,a,likes\na,b,likes\na,b,pays\n"
	src := files(t, map[string][]byte{"nodes.csv": []byte(nodes), "edges.csv": []byte(edges)})
	o := Options{Src: src, TableOptions: TableOptions{Relation: "how"}, ReverseRelations: "on"}
	ds, _ := written(t, "csv", o)
	want := map[string]int{"a pays b": 1, "b likes a": 1, "a likes b": 1,
		"b rev_pays a": 1, "a rev_likes b": 1, "b rev_likes a": 1}
	if got := namedEdges(ds); !maps.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
	like := TableOptions{Like: ds.Dir}
	later := files(t, map[string][]byte{"nodes.csv": []byte("id,x\nz,4\na,1\n"), "edges.csv": []byte("how,dst,src\nlikes,z,a\n")})
	if got, _ := written(t, "csv", Options{Src: later, TableOptions: like}); refused(ds, got) ||
		!maps.Equal(namedEdges(got), map[string]int{"a likes z": 1, "z rev_likes a": 1}) {
		t.Errorf("--like gives the edges %v", namedEdges(got))
	}
	for text, want := range map[string]string{
		"src,dst,how\na,b,hates\n":          `line 2 column 3 (how): "hates" is not a relation; remove the edge`,
		"src,dst,how\na,b,\n":               `line 2 column 3 (how): "" is not a relation; write the name`,
		"src,dst\na,b\n":                    `no column "how"`,
		"src,dst,how,weight\na,b,likes,2\n": "relations have no weights; ignore it with --drop-weights",
		"src,dst,how\na,nobody,likes\n":     `"nobody" is not an id in the vertex table`,
	} {
		src := files(t, map[string][]byte{"nodes.csv": []byte(nodes), "edges.csv": []byte(text)})
		if _, err := load(t, "csv", Options{Src: src, TableOptions: like}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestSharedClasses: kinds with labels have one list of classes.
func TestSharedClasses(t *testing.T) {
	m := with(shop(), "nodes/product.csv", "sku,price,label\n1,5,stays\nB,7,\nC,9,leaves\nD,1,stays\n")
	got := mustLoad(t, "csv", Options{Src: files(t, m), SplitSizes: "50/25/25"})
	if !slices.Equal(got.Labels, []int32{1, 0, 1, 0, 1, -1, 0, 1, -1, -1}) || !slices.Equal(got.ClassNames, []string{"leaves", "stays"}) {
		t.Errorf("labels %v of classes %v", got.Labels, got.ClassNames)
	}
	regression := with(shop(), "nodes/product.csv", "sku,price,kind\n1,5,1.5\nB,7,2.5\nC,9,\nD,1,3\n")
	got = mustLoad(t, "csv", Options{Src: files(t, regression), Task: graph.Regression, TableOptions: TableOptions{Label: "product.kind"}})
	if got.Task != graph.Regression || got.Targets[4] != 1.5 || got.Targets[7] != 3 || !slices.Equal(got.Labels,
		[]int32{-1, -1, -1, -1, 0, 0, -1, 0, -1, -1}) {
		t.Errorf("targets %v, labels %v", got.Targets, got.Labels)
	}
}

// TestBadRelatedTables: tables and flags that are refused, with their remedies.
// TestEmptyEnds: a row without an end, such as an empty foreign key, is no edge. The other end of such a row is
// no vertex of a kind without a table. A text for missing cells may be the id of a vertex.
func TestEmptyEnds(t *testing.T) {
	tables := with(shop(), "edges/customer__buys__product.csv", "customer,product\n1,1\n1,\n,B\n2,NULL\n2,C\n",
		"edges/product__of__brand.csv.gz", gz("product,brand\n1,acme\nB,\n,zeta\nC,NULL\n"),
		"edges/shop__sells__product.csv", "shop,product\nx,1\ny,\n")
	ds, log := written(t, "csv", Options{Src: files(t, tables), ReverseRelations: "off"})
	want := map[string]int{"customer:1 buys product:1": 1, "customer:2 buys product:C": 1, "product:1 of brand:acme": 1,
		"product:C of brand:NULL": 1, "shop:x sells product:1": 1, "customer:1 knows customer:2": 1, "customer:2 knows customer:3": 1}
	if got := namedEdges(ds); !maps.Equal(got, want) {
		t.Errorf("edges %v", got)
	}
	if kinds := ds.Meta.Relations.Kinds; kinds[ds.Meta.Relations.Kind("shop")].Vertices != 1 {
		t.Errorf("kinds %+v", kinds)
	}
	for _, want := range []string{"customer__buys__product.csv left_out: weight_0=0 unknown_ends=0 without_end=3",
		"product__of__brand.csv.gz left_out: weight_0=0 unknown_ends=0 without_end=2"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	na := with(tables, "nodes/product.csv", "sku,price\n1,5\nB,7\nC,9\nNULL,1\n")
	if ds, _ := written(t, "csv", Options{Src: files(t, na)}); namedEdges(ds)["customer:2 buys product:NULL"] != 1 {
		t.Errorf("edges %v", namedEdges(ds))
	}
}

func TestBadRelatedTables(t *testing.T) {
	first, _ := written(t, "csv", Options{Src: files(t, shop())})
	plain, _ := inputTable(t, Options{TableOptions: TableOptions{Fill: "zero"}})
	const buys, customers = "edges/customer__buys__product.csv", "nodes/customer.csv"
	for name, c := range map[string]struct {
		changes []any
		o       Options
		want    string
	}{
		"unknown id": {[]any{buys, "customer,product\n1,1\n9,1\n"}, Options{},
			"edges/customer__buys__product.csv: line 3 column 1 (customer): \"9\" is not an id in nodes/customer.csv; add the vertex"},
		"id of a float":     {[]any{buys, "customer,product\n1.0,1\n"}, Options{}, "write 1, as in nodes/customer.csv"},
		"control character": {[]any{"edges/product__of__brand.csv.gz", gz("product,brand\n1,\"a\nb\"\n")}, Options{}, "control character"},
		"repeated id":       {[]any{"nodes/product.csv", "sku,price\n1,2\n1,3\n"}, Options{}, "occurs twice"},
		"name":              {[]any{"edges/buys.csv", "a,b\n1,1\n"}, Options{}, "name it FROM__RELATION__TO"},
		"empty name":        {[]any{"edges/customer____product.csv", "a,b\n1,1\n"}, Options{}, "is not the name of a relation"},
		"colon":             {[]any{"nodes/a:b.csv", "a,b\n1,1\n"}, Options{}, "rename it without colons"},
		"folder":            {[]any{"nodes/x.csv/y", "a,b\n1,1\n"}, Options{}, "nodes/x.csv"},
		"one column":        {[]any{buys, "customer\n1\n"}, Options{}, "write a column of sources and one of destinations"},
		"two tables":        {[]any{"nodes/customer.tsv", "id\n1\n"}, Options{}, "tables of the same name"},
		"weights":           {[]any{buys, "customer,product,weight\n1,1,2\n"}, Options{}, "ignore it with --drop-weights"},
		"spreadsheet":       {[]any{"nodes/shop.xlsx", "PK"}, Options{}, ".xlsx files are not supported"},
		"no folder nodes":   {[]any{customers, nil, "nodes/product.csv", nil}, Options{}, "no table in the folder nodes; write a table nodes/"},
		"no label":          {[]any{customers, "id,age\n1,2\n2,2\n3,4\n4,4\n"}, Options{}, "name the column with --label KIND.COLUMN"},
		"other classes": {[]any{"nodes/product.csv", "sku,label\n1,red\nB,red\nC,red\n"}, Options{},
			`the kinds "customer" and "product" have labels, but not of the same classes`},
		"ids":   {nil, Options{TableOptions: TableOptions{ID: "customer.key"}}, `no column "key"`},
		"label": {nil, Options{TableOptions: TableOptions{Label: "brand.name"}}, `--label names "brand.name"`},
		"drop":  {nil, Options{TableOptions: TableOptions{Drop: []string{"nothing"}}}, "write COLUMN or KIND.COLUMN"},
		"edge features": {nil, Options{TableOptions: TableOptions{EdgeFeatures: []string{"x"}}},
			"relations have no weights and no edge features"},
		"symmetrise":         {nil, Options{Symmetrise: true}, "--symmetrise, but the graph is relational; leave it out"},
		"like a plain graph": {nil, Options{TableOptions: TableOptions{Like: plain.Dir}}, "only one of the source and --like"},
		"like with reverse":  {nil, Options{ReverseRelations: "on", TableOptions: TableOptions{Like: first.Dir}}, "--like reuses"},
		"another relation": {[]any{"edges/brand__in__city.csv", "a,b\n"}, Options{TableOptions: TableOptions{Like: first.Dir}},
			"its tables are nodes/customer, nodes/product, edges/brand__in__city, "},
		"a new table": {[]any{"nodes/brand.csv", "id\nacme\nzeta\n"}, Options{TableOptions: TableOptions{Like: first.Dir}},
			"its tables are nodes/brand, nodes/customer, nodes/product, "},
		"columns like": {[]any{"nodes/product.csv", "sku,color\n1,red\nB,red\n"}, Options{TableOptions: TableOptions{Like: first.Dir}},
			`no column "price"`},
		"ends like": {[]any{buys, "product,person\n1,1\n"}, Options{TableOptions: TableOptions{Like: first.Dir}}, `no column "customer"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Src = files(t, with(shop(), c.changes...))
			if _, err := load(t, "csv", c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for name, o := range map[string]Options{
		"import tables in the folders nodes and edges": {TableOptions: TableOptions{Featureless: "ids"}},
		"are for graphs with relations":                {ReverseRelations: "off"},
		"only one of the source and --like":            {TableOptions: TableOptions{Like: first.Dir}},
	} {
		o.Src = files(t, tinyCSV())
		if _, err := load(t, "csv", o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// TestRelatedParquet: tables of different formats in one folder.
func TestRelatedParquet(t *testing.T) {
	ds, _ := written(t, "auto", Options{Src: files(t, map[string][]byte{"nodes/x.parquet": testFile("nodes.parquet"),
		"edges/x__to__x.parquet": testFile("edges.parquet"), "edges/x__has__tag.csv": []byte("x,tag\nb,new\n")}),
		TableOptions: TableOptions{DropUnknown: true, DropWeights: true}})
	if got := namedEdges(ds); got["tag:new rev_has x:b"] != 1 || len(got) < 4 {
		t.Errorf("edges %v", got)
	}
}

// TestRealRelatedTables converts a citation graph to tables, with the words of papers as text.
func TestRealRelatedTables(t *testing.T) {
	z, err := npy.OpenZip(realdata.File(t, "relational-acm.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	whole := func(name string) []int64 {
		a, err := z.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		x, err := a.Int64s()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	offsets, words, labels := whole("x.paper.indptr"), whole("x.paper.indices"), whole("y.paper")
	split := make([]string, len(labels))
	for set, name := range map[string]string{"train": "split.60.train", "val": "split.60.val", "test": "split.60.test"} {
		for _, v := range whole(name) {
			split[v] = set
		}
	}
	var papers strings.Builder
	papers.WriteString("id,label,split,words\n")
	for v, label := range labels {
		fmt.Fprintf(&papers, "%d,%d,%s,", v, label, split[v])
		for _, w := range words[offsets[v]:offsets[v+1]] {
			fmt.Fprintf(&papers, "w%d ", w)
		}
		papers.WriteString("\n")
	}
	tables := map[string][]byte{"nodes/paper.csv": []byte(papers.String())}
	for _, kind := range []string{"author", "subject"} {
		ends, text := whole("edge.paper.to."+kind), []byte("paper,"+kind+"\n")
		n := len(ends) / 2
		for i := range n {
			text = fmt.Appendf(text, "%d,%d\n", ends[i], ends[n+i])
		}
		tables["edges/paper__to__"+kind+".csv"] = text
	}
	ds, _ := written(t, "csv", Options{Src: files(t, tables), TableOptions: TableOptions{Words: []string{"words"}}})
	m := ds.Meta
	if m.Vertices != 4019+7167+60 || m.Edges != 2*(13407+4019) || m.Train != 180 || m.Val != 1000 || m.Test != 1000 || m.Classes != 3 {
		t.Errorf("%d vertices, %d edges, %d/%d/%d in %d classes", m.Vertices, m.Edges, m.Train, m.Val, m.Test, m.Classes)
	}
}
