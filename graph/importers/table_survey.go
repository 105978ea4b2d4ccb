package importers

import (
	"slices"
	"strings"
)

// survey is the first pass over the vertices.
func (im *tableImport) survey() {
	check(im.nodes.each(func(at int64, cells [][]byte) error {
		im.addID(at, cells[im.id])
		im.addLabel(at, cells)
		im.addSet(at, cells)
		im.times.add(im.nodes, at, cells)
		for i, p := range im.profiles {
			if p != nil {
				p.add(at, cells[i])
			}
		}
		return nil
	}))
	im.nodes.require(im.ids.len() > 0, "write a row for each vertex", "there is no row after the header")
}

// addLabel reads the label of the vertex of a row.
func (im *tableImport) addLabel(at int64, cells [][]byte) {
	switch {
	case im.targets != nil:
		im.classes.labels = append(im.classes.labels, im.targets.add(im.nodes, at, cells))
	case im.label >= 0:
		im.classes.add(at, cells[im.label])
	default:
		im.classes.add(at, nil)
	}
}

// addID numbers the vertex of a row.
func (im *tableImport) addID(at int64, id []byte) {
	switch {
	case len(id) == 0:
		check(im.nodes.fault(at, im.id, id, "is not an id").Then("give each vertex a unique id"))
	case slices.ContainsFunc(id, func(b byte) bool { return b < ' ' }):
		check(im.nodes.fault(at, im.id, id, "contains a line break or another control character").Then("write ids without control characters"))
	}
	if v, fresh := im.ids.add(id); !fresh {
		check(im.nodes.fault(at, im.id, id, "occurs twice: row %d has the same id", v+1).Then("give each vertex one row and a unique id"))
	}
}

// settleClasses numbers the classes and logs them.
func (im *tableImport) settleClasses() {
	switch {
	case im.targets != nil:
		return
	case im.like != nil:
		im.classes.fit(im.nodes, im.label, im.like)
	default:
		im.classes.settle(im.nodes, im.label)
	}
	if n := im.classes.negative; n > 0 {
		im.Log("warning: label=%s: -1 means no label, vertices=%d; give the class a name if -1 is one", im.table.Label, n)
	}
	if im.like == nil {
		const most = 20
		names := strings.Join(im.classes.names[:min(most, len(im.classes.names))], ", ")
		im.Log("label=%s classes=%d: %s", im.table.Label, len(im.classes.names), names)
	}
}
