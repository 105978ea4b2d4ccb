package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

// takeOver replaces the options that change a network's input by those of --like, and refuses
// contradicting flags. Options that an older version did not record keep the flags' values.
func (im *tableImport) takeOver() {
	like, edges := im.like, im.like.EdgeImport
	// contradiction refuses a flag that contradicts --like.
	contradiction := func(is bool, flag, there, remedy string) {
		if is {
			im.flags.refuse(remedy, "%s contradicts --like=%s, where %s", flag, im.TableOptions.Like, there)
		}
	}
	contradiction(im.Normalize && !like.Normalized, "--normalize-features", "features are not divided by their sums", "leave --normalize-features out")
	im.Normalize = like.Normalized
	if edges == nil {
		im.Log("warning: like=%s does not record --symmetrise, --weight, --drop-weights and --ends: give those of the import of the training data", im.TableOptions.Like)
		return
	}
	const rename = "; rename the column if the table of edges calls it differently"
	column := "none"
	if edges.Weight != "" {
		column = `"` + edges.Weight + `"`
	}
	contradiction(im.Symmetrise && like.Directed, "--symmetrise", "edges are stored in one direction", "leave --symmetrise out")
	contradiction(im.DropWeights && like.Weighted, "--drop-weights", "edges have weights", "leave --drop-weights out")
	contradiction(im.Weight != "" && im.Weight != edges.Weight, "--weight="+im.Weight, "the column of weights is "+column, "leave --weight out"+rename)
	contradiction(len(im.Ends) > 0 && !slices.Equal(im.Ends, edges.Ends),
		"--ends="+strings.Join(im.Ends, ","), "edges go from column "+strings.Join(edges.Ends, " to "), "leave --ends out"+rename)
	im.Symmetrise, im.DropWeights, im.Ends = im.Symmetrise || edges.Symmetrised, im.DropWeights || edges.WeightsDropped, edges.Ends
}

// findLike uses the column of weights that --like records, and records the columns in use.
func (e *edgeTable) findLike(im *tableImport) {
	if im.like != nil && im.like.EdgeImport != nil {
		name := im.like.EdgeImport.Weight
		if e.weight = -1; name != "" {
			e.weight = e.column(name)
		}
		if im.like.Weighted {
			e.weight = e.needs(name, "its name in "+im.TableOptions.Like)
		}
	}
	im.edges = graph.EdgeImport{WeightsDropped: im.DropWeights, Ends: []string{e.names[e.ends[0]], e.names[e.ends[1]]}}
	if e.weight >= 0 {
		im.edges.Weight = e.names[e.weight]
	}
}
