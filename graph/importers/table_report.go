package importers

import (
	"fmt"
	"math"
	"strings"

	"siafu/graph"
)

// unlikeScales is the ratio of features' scales above which there is a warning.
const unlikeScales = 100

// mostSaid is the maximum number of columns with their own log line.
const mostSaid = 40

// sayColumns logs the use of each column, and warnings.
func (im *tableImport) sayColumns() {
	for i, e := range im.columns {
		if i == mostSaid {
			im.Log("columns=%d: %d more are in meta.json", len(im.columns), len(im.columns)-i)
			break
		}
		im.Log("%s", e)
	}
	for i, d := range im.table.Dropped {
		if i == mostSaid {
			im.Log("dropped columns=%d: %d more are in meta.json", len(im.table.Dropped), len(im.table.Dropped)-i)
			break
		}
		im.Log("dropped column=%s: %s", d.Name, d.Why)
	}
	im.sayCodes()
	if !im.Standardise && im.like == nil {
		im.compareScales()
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

// compareScales warns if the root mean square of a number is far from another's, or from the
// ones of categories, hashes and words: gradients of their weights differ by the square of the
// ratio.
func (im *tableImport) compareScales() {
	least, most := 1.0, 1.0
	smallest, largest := "", ""
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
	im.Log("warning: scales of features differ by a factor of %.3g (%sabout %.3g, %sabout %.3g): training converges badly; import with --standardise",
		most/least, largest, most, smallest, least)
}

// sayDirection warns of edges in only one direction.
func sayDirection(o Options, r *graph.WriteReport) error {
	if r.Directed && !r.Uneven {
		o.Log("warning: edges are stored in one direction only, and a vertex aggregates only from its in-neighbours; import with --symmetrise to store both directions")
	}
	return nil
}
