package importers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"siafu/graph"
)

// survey is the first pass over the vertices.
func (im *tableImport) survey() {
	im.nodes.each(func(at int64, cells [][]byte) {
		im.addID(at, cells[im.id])
		im.addLabel(at, cells)
		im.addSet(at, cells)
		im.times.add(im.nodes, at, cells)
		for i, p := range im.profiles {
			if p != nil {
				p.add(at, cells[i], im.classes.labels[len(im.classes.labels)-1])
			}
		}
	})
	im.nodes.require(im.ids.len() > 0, "write a row for each vertex", "there is no row after the header")
}

func (im *tableImport) addLabel(at int64, cells [][]byte) {
	switch {
	case im.targets != nil:
		im.classes.labels = append(im.classes.labels, im.targets.add(im.nodes, at, cells))
	case im.label >= 0:
		im.classes.add(at, cells[im.label], im.missing)
	default:
		im.classes.add(at, nil, im.missing)
	}
}

// checkID refuses a cell that cannot be an id.
func checkID(t *tableFile, column int, at int64, id []byte) {
	switch {
	case len(id) == 0:
		check(t.fault(at, column, id, "is not an id").Then("give each vertex a unique id"))
	case slices.ContainsFunc(id, func(b byte) bool { return b < ' ' }):
		check(t.fault(at, column, id, "contains a line break or another control character").
			Then("write ids without control characters"))
	}
}

// addID numbers the vertex of a row.
func (im *tableImport) addID(at int64, id []byte) {
	checkID(im.nodes, im.id, at, id)
	if v, fresh := im.ids.add(id); !fresh {
		var rows []int64
		im.nodes.each(func(at int64, _ [][]byte) { rows = append(rows, at) })
		check(im.nodes.fault(at, im.id, id, "occurs twice: %s %d has the same id", im.nodes.unit, rows[v]).
			Then("give each vertex one row and a unique id"))
	}
}

func (im *tableImport) settleClasses() {
	switch {
	case im.unlabelled, im.targets != nil, im.label < 0 && im.like.TaskName() != graph.MultiClass:
		return // no classes; without a column of labels, the vertices are to be predicted
	case im.like != nil:
		im.classes.fit(im.nodes, im.label, im.like)
	default:
		im.classes.settle(im.nodes, im.label)
	}
	if n := im.classes.negative; n > 0 {
		im.Log("warning: label=%s: -1 means no label, vertices=%d; give the class a name if -1 is one", im.table.Label, n)
	}
	if g := im.classes.missing; g.count > 0 {
		im.Log("warning: label=%s: cells such as %s mean no label, vertices=%d; name the texts of missing cells with --missing if one is "+
			"a class", im.table.Label, g.value, g.count)
	}
	if im.like == nil {
		const most = 20
		names := strings.Join(im.classes.names[:min(most, len(im.classes.names))], ", ")
		im.Log("label=%s classes=%d: %s", im.table.Label, len(im.classes.names), names)
	}
}

// unlikeScales is the ratio of features' scales above which there is a warning.
const unlikeScales = 100

// maxLogged is the maximum number of columns with their own log line.
const maxLogged = 40

func (im *tableImport) logColumns() {
	for i, e := range im.columns {
		if i == maxLogged {
			im.Log("columns=%d: %d more are in meta.json", len(im.columns), len(im.columns)-i)
			break
		}
		im.Log("%s", e)
		im.warnOfLosses(e)
	}
	for i, d := range im.table.Dropped {
		if i == maxLogged {
			im.Log("dropped columns=%d: %d more are in meta.json", len(im.table.Dropped), len(im.table.Dropped)-i)
			break
		}
		im.Log("dropped column=%s: %s", d.Name, d.Why)
	}
	im.warnOfCodes()
	im.warnOfLeaks()
	if !im.Standardise && im.like == nil {
		im.compareScales()
	}
}

// warnOfLosses warns of many cells without a value that the features express.
func (im *tableImport) warnOfLosses(e *encoder) {
	rows := int64(im.ids.len())
	if im.like != nil && isLarge(e.unknown, rows) {
		im.Log("warning: column=%s: %d of %d values are unknown to the model of --like, and set no feature", e.Name, e.unknown, rows)
	}
	if 2*e.missing > rows {
		im.Log("warning: column=%s: %d of %d cells are missing; leave the column out with %s if that is no value", e.Name,
			e.missing, rows, dropFlag(e.Name))
	}
}

// String returns a line about the column.
func (e *encoder) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "column=%s kind=%s features=%d", e.Name, e.Kind, e.Width)
	if e.Kind == graph.NumberColumn && e.Scale != 1 {
		fmt.Fprintf(&b, " mean=%.6g scale=%.6g", e.Mean, e.Scale)
	}
	if e.Kind == graph.DateColumn {
		fmt.Fprintf(&b, " mean=%s scale=%.6g_days", dateInstant(e.Mean), e.Scale)
		if e.Format != "" {
			fmt.Fprintf(&b, " format=%s", e.Format)
		}
	}
	if e.missing > 0 {
		fmt.Fprintf(&b, " missing=%d", e.missing)
		if e.Kind == graph.NumberColumn {
			fmt.Fprintf(&b, " filled_with=%.6g", *e.Fill)
		}
	}
	if e.unknown > 0 {
		fmt.Fprintf(&b, " unknown_values=%d", e.unknown)
	}
	return b.String()
}

// compareScales warns if the root mean square of a number is far from another's, or from the ones
// of categories, hashes and words: gradients of their weights differ by the square of the ratio.
func (im *tableImport) compareScales() {
	least, most := 1.0, 1.0
	smallest, largest := "other features ", "other features "
	for _, e := range im.columns {
		if e.Kind != graph.NumberColumn {
			continue
		}
		p := im.profiles[e.at]
		rms := math.Sqrt(p.squares / float64(p.numbers))
		if rms > most {
			most, largest = rms, e.Name+" "
		}
		if rms > 0 && rms < least {
			least, smallest = rms, e.Name+" "
		}
	}
	if most < unlikeScales*least {
		return
	}
	im.Log("warning: scales of features differ by a factor of %.3g (%sabout %.3g, %sabout %.3g): training converges "+
		"badly; import with --standardise",
		most/least, largest, most, smallest, least)
}

// warnOfDirection warns of edges in only one direction.
func warnOfDirection(o Options, r *graph.WriteReport) error {
	if r.Directed && !r.Uneven {
		o.Log("warning: edges are stored in one direction only, and a vertex aggregates only from its in-neighbours; import with " +
			"--symmetrise to store both directions")
	}
	return nil
}
