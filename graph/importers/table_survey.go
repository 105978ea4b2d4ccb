package importers

import (
	"slices"
	"strings"

	"siafu/internal/fault"
)

// survey is the first pass over the vertices.
func (im *tableImport) survey() error {
	err := im.nodes.each(func(at int64, cells [][]byte) error {
		if err := im.addID(at, cells[im.id]); err != nil {
			return err
		}
		if err := im.addLabel(at, cells); err != nil {
			return err
		}
		if err := im.addSet(at, cells); err != nil {
			return err
		}
		if err := im.times.add(im.nodes, at, cells); err != nil {
			return err
		}
		for i, p := range im.profiles {
			if p != nil {
				p.add(at, cells[i])
			}
		}
		return nil
	})
	if err == nil && im.ids.len() == 0 {
		err = fault.New(fault.Data, im.op(), im.nodes.path, "there is no row after the header").Then("write a row for each vertex")
	}
	return err
}

// addLabel reads the label of the vertex of a row.
func (im *tableImport) addLabel(at int64, cells [][]byte) error {
	var label []byte
	switch {
	case im.targets != nil:
		l, err := im.targets.add(im.nodes, at, cells)
		im.classes.labels = append(im.classes.labels, l)
		return err
	case im.label >= 0:
		label = cells[im.label]
	}
	im.classes.add(at, label)
	return nil
}

// addID numbers the vertex of a row.
func (im *tableImport) addID(at int64, id []byte) error {
	switch {
	case len(id) == 0:
		return im.nodes.fault(at, im.id, id, "is not an id").Then("give each vertex a unique id")
	case slices.ContainsFunc(id, func(b byte) bool { return b < ' ' }):
		return im.nodes.fault(at, im.id, id, "contains a line break or another control character").Then("write ids without control characters")
	}
	if v, fresh := im.ids.add(id); !fresh {
		return im.nodes.fault(at, im.id, id, "occurs twice: row %d has the same id", v+1).Then("give each vertex one row and a unique id")
	}
	return nil
}

// sayClasses numbers the classes and says which they are.
func (im *tableImport) sayClasses() error {
	if im.targets != nil {
		return nil
	}
	number := im.classes.settle
	if im.like != nil {
		number = func(t *tableFile, column int) error { return im.classes.fit(t, column, im.like) }
	}
	if err := number(im.nodes, im.label); err != nil {
		return err
	}
	if n := im.classes.negative; n > 0 {
		im.Log("warning: label=%s: -1 means no label, vertices=%d; give the class a name if -1 is one", im.table.Label, n)
	}
	if im.like != nil {
		return nil
	}
	const most = 20
	names := strings.Join(im.classes.names[:min(most, len(im.classes.names))], ", ")
	im.Log("label=%s classes=%d: %s", im.table.Label, len(im.classes.names), names)
	return nil
}
