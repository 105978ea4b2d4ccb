package importers

import (
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// takeOver replaces the options that change a network's input by those of --like, and refuses
// contradicting flags. Options that an older version did not record keep the flags' values.
func (im *tableImport) takeOver() error {
	like, edges := im.like, im.like.EdgeImport
	if im.Normalize && !like.Normalized {
		return im.contradiction("--normalize-features", "features are not divided by their sums", "leave --normalize-features out")
	}
	im.Normalize = like.Normalized
	if edges == nil {
		im.Log("warning: like=%s does not record --symmetrise, --weight, --drop-weights and --ends: give those of the import of the training data", im.TableOptions.Like)
		return nil
	}
	rename := "leave %s out; rename the column if the table of edges calls it differently"
	switch {
	case im.Symmetrise && like.Directed:
		return im.contradiction("--symmetrise", "edges are stored in one direction", "leave --symmetrise out")
	case im.DropWeights && like.Weighted:
		return im.contradiction("--drop-weights", "edges have weights", "leave --drop-weights out")
	case im.Weight != "" && im.Weight != edges.Weight:
		return im.contradiction("--weight="+im.Weight, "the column of weights is "+quoted(edges.Weight), strings.ReplaceAll(rename, "%s", "--weight"))
	case len(im.Ends) > 0 && !slices.Equal(im.Ends, edges.Ends):
		return im.contradiction("--ends="+strings.Join(im.Ends, ","), "edges go from column "+strings.Join(edges.Ends, " to "), strings.ReplaceAll(rename, "%s", "--ends"))
	}
	im.Symmetrise, im.DropWeights, im.Ends = im.Symmetrise || edges.Symmetrised, im.DropWeights || edges.WeightsDropped, edges.Ends
	return nil
}

func quoted(column string) string {
	if column == "" {
		return "none"
	}
	return `"` + column + `"`
}

// contradiction returns the fault of a flag that contradicts --like.
func (im *tableImport) contradiction(flag, there, remedy string) error {
	return fault.New(fault.Usage, im.op(), im.Src, "%s contradicts --like=%s, where %s", flag, im.TableOptions.Like, there).Then("%s", remedy)
}

// findLike uses the column of weights that --like records, and records the columns in use.
func (e *edgeTable) findLike(im *tableImport) error {
	if im.like != nil && im.like.EdgeImport != nil {
		name := im.like.EdgeImport.Weight
		if e.weight = -1; name != "" {
			e.weight = e.column(name)
		}
		if e.weight < 0 && im.like.Weighted {
			_, err := e.needs(name, "its name in "+im.TableOptions.Like)
			return err
		}
	}
	im.edges = graph.EdgeImport{WeightsDropped: im.DropWeights, Ends: []string{e.names[e.ends[0]], e.names[e.ends[1]]}}
	if e.weight >= 0 {
		im.edges.Weight = e.names[e.weight]
	}
	return nil
}

// recordMissing records how many cells of each column were missing.
func (im *tableImport) recordMissing() {
	for i, e := range im.columns {
		im.table.Columns[i].Missing = e.missing
	}
}
