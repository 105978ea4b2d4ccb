package importers

import (
	"fmt"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/graph/fault"
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
		for i, p := range im.profiles {
			if p != nil {
				p.add(at, cells[i])
			}
		}
		return nil
	})
	if err == nil && im.ids.len() == 0 {
		err = fault.New(fault.Data, im.op(), im.nodes.path, "there is no row below the heading").Then("write a row for each vertex")
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
		return im.nodes.fault(at, im.id, id, "is no id").Then("give each vertex an id of its own")
	case slices.ContainsFunc(id, func(b byte) bool { return b < ' ' }):
		return im.nodes.fault(at, im.id, id, "holds a character that ends lines or is not to be seen").Then("write ids of one line")
	}
	if v, fresh := im.ids.add(id); !fresh {
		return im.nodes.fault(at, im.id, id, "comes twice: it is the id of row %d, too", v+1).Then("give each vertex one row and an id of its own")
	}
	return nil
}

// addSet reads which set the vertex of a row is in.
func (im *tableImport) addSet(at int64, cells [][]byte) error {
	set := uint8(graph.SplitNone)
	if im.split >= 0 {
		var known bool
		if set, known = setOf(cells[im.split]); !known {
			return im.nodes.fault(at, im.split, cells[im.split], "is no set").Then("write train, val, test or nothing")
		}
		if v := len(im.sets); set != graph.SplitNone && (im.label >= 0 || im.targets != nil) && im.classes.labels[v] == graph.Unlabelled {
			column := im.label
			if im.targets != nil {
				column = im.targets.at[0]
			}
			return im.nodes.fault(at, column, nil, "is the label of a vertex in the %s set", splitNames[set]).
				Then("leave the split of vertices without a label empty")
		}
	}
	im.sets = append(im.sets, set)
	return nil
}

// setOf is the split value that a cell names.
func setOf(cell []byte) (set uint8, known bool) {
	switch strings.ToLower(string(cell)) {
	case "", "none":
		return graph.SplitNone, true
	case "train", "training":
		return graph.SplitTrain, true
	case "val", "valid", "validation", "dev":
		return graph.SplitVal, true
	case "test", "testing":
		return graph.SplitTest, true
	}
	return 0, false
}

// sayClasses numbers the classes and says which they are.
func (im *tableImport) sayClasses() error {
	if im.targets != nil {
		return nil
	}
	if im.like != nil {
		return im.classes.fit(im.nodes, im.label, im.like)
	}
	if err := im.classes.settle(im.nodes, im.label); err != nil {
		return err
	}
	const most = 20
	names := strings.Join(im.classes.names[:min(most, len(im.classes.names))], ", ")
	im.Log("label=%s classes=%d: %s", im.table.Label, len(im.classes.names), names)
	return nil
}

// chooseSplit draws a split where the table has none.
func (im *tableImport) chooseSplit() error {
	if im.split >= 0 || im.like != nil {
		return nil
	}
	im.sets = drawPercent(im.classes.labels, 60, 20, im.Seed)
	im.table.Split = fmt.Sprintf("drawn with seed %d: 60 %% train, 20 %% val, 20 %% test", im.Seed)
	im.Log("split=drawn train=60%% val=20%% test=20%% seed=%d", im.Seed)
	return nil
}
