package importers

import (
	"bytes"
	"slices"

	"siafu/graph"
	"siafu/graph/pairs"
)

var triplesFormat = importer{
	entry: entry{Name: "triples", Help: "knowledge graph: a file with a line HEAD RELATION TAIL for each triple, between tabs or " +
		"blanks; or a folder with the split train.txt, valid.txt and test.txt, as FB15k-237 and WN18RR"},
	read: triples,
	recognises: func(src string) bool {
		return holds("train.txt")(src) && holds("valid.txt")(src) && holds("test.txt")(src)
	},
	onlySplit: "valid.txt and test.txt of a folder are the split; siafu holdout splits the triples of a file",
}

// tripleReader numbers entities and relations in the order of their first triple.
type tripleReader struct{ entities, relations *idIndex }

// triples reads a knowledge graph. Entities are one kind of vertices. Their features are one-hot: the first weight
// matrix has a row for each entity.
func triples(k *resources, o Options) *graph.Content {
	r := &tripleReader{newIDIndex(), newIDIndex()}
	var lists [3]pairs.Triples
	files := []input{k.input}
	if !isFile("")(o.Src) {
		files = []input{k.in("train.txt"), k.in("valid.txt"), k.in("test.txt")}
	}
	for i, file := range files {
		parseFile(file, func(b block) ([][3][]byte, error) { return parseTriples(file, b) }, func(rows [][3][]byte) {
			lists[i] = r.add(file, lists[i], rows)
		})
	}
	n := int64(r.entities.len())
	k.require(n > 0, "write a line HEAD RELATION TAIL for each triple", "it has no triples")
	checkVertices(k.input, n)
	x := &relational{all: true}
	x.of.Kinds = []graph.VertexKind{{Name: "entity", Vertices: n}}
	for i := range r.relations.len() {
		x.of.Relations = append(x.of.Relations, graph.Relation{Name: string(r.relations.at(uint32(i))), Inverse: -1})
	}
	c := &graph.Content{
		Vertices: n, Labels: unlabelled(n), Split: make([]uint8, n), IDs: r.entities.ids(),
		Relations: &x.of, Edges: x.of.WithReverse(lists[0].EachRelation),
	}
	c.Features = c.Relations.JoinFeatures(make([]graph.Features, 1), n, false)
	if len(files) > 1 {
		c.Task, c.HeldOut = graph.Links, &graph.HeldOut{}
		for v := range c.Split {
			c.Split[v] = graph.SplitTrain
		}
		c.HeldOut.Val.Add(lists[1]...)
		c.HeldOut.Test.Add(lists[2]...)
		known := slices.Concat(lists[:]...).Sort()
		loops := slices.DeleteFunc(slices.Clone(lists[0]), func(x graph.Triple) bool { return x.Src != x.Dst })
		c.HeldOut.Loops.Add(loops.Sort()...)
		check(pairs.Corrupt(k.op, k.path, c.HeldOut, c.Relations, known, o.Seed))
	}
	o.Log = func(string, ...any) {} // of hundreds of relations
	x.addReverse(o)
	return c
}

// parseTriples returns the three words of each line that is not empty. Words may contain blanks if tabs separate them.
func parseTriples(at input, b block) (rows [][3][]byte, err error) {
	for line, text := b.line, b.text; len(text) > 0; line++ {
		var row []byte
		row, text = nextLine(text)
		words := bytes.Fields(row)
		if len(words) == 0 {
			continue
		}
		if bytes.IndexByte(row, '\t') >= 0 {
			words = bytes.Split(row, []byte{'\t'})
		}
		for _, w := range words {
			if len(bytes.TrimSpace(w)) == 0 {
				words = nil
			}
		}
		if len(words) != 3 {
			return nil, at.bad("line %d: %.60q is not HEAD RELATION TAIL", line, row).
				Then("write three words between tabs or blanks in each line, and neither counts nor a header")
		}
		rows = append(rows, [3][]byte(words))
	}
	return rows, nil
}

// add numbers the words of triples, and appends the triples to a list.
func (r *tripleReader) add(at input, list pairs.Triples, rows [][3][]byte) pairs.Triples {
	for _, row := range rows {
		src, _ := r.entities.add(row[0])
		relation, _ := r.relations.add(row[1])
		dst, _ := r.entities.add(row[2])
		at.require(relation < mostRelations, "write the relation as the second word of a line",
			"triple %d has relation %.60q, but a dataset has at most %d relations and their reverses", len(list)+1, row[1],
			mostRelations)
		list = append(list, graph.Triple{Src: src, Dst: dst, Relation: uint16(relation)})
	}
	return list
}
