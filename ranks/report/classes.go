package report

import (
	"fmt"
	"slices"

	"siafu/internal/table"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// classedRuns is the maximal number of runs with tables of their classes.
const classedRuns = 12

// classParts returns a part with the class tables of each run, for its last non-empty split: test, if
// there are test vertices. The tables of several runs are folded under one title.
func classParts(runs []*Run) []chart.Part {
	all := chart.Part{Title: "Classes of each run", Folded: true}
	tables := 0
	for _, r := range runs {
		if r.Summary == nil {
			continue
		}
		scores := r.Summary.Metrics
		splits := scores.Splits()
		if len(splits) == 0 || splits[0].PerClass == nil {
			continue
		}
		if tables++; tables > classedRuns {
			all.Text = fmt.Sprintf("The first %d runs have tables. Give siafu report fewer runs to see the classes of others.", classedRuns)
			break
		}
		all.Parts = append(all.Parts, classTables(r, scores, splits[len(splits)-1])...)
	}
	if tables < 2 {
		return all.Parts
	}
	return []chart.Part{all}
}

// classTables returns the table of classes and the confusion matrix of a split of a run.
func classTables(r *Run, s *runfolder.Scores, split runfolder.Split) []chart.Part {
	classes, averages, shown, all := s.ClassTable(split.Metrics, runfolder.MostClasses)
	note := ""
	if shown < all {
		note = fmt.Sprintf(" The %d largest of %d classes; averages are over all.", shown, all)
	}
	parts := []chart.Part{{
		Title: fmt.Sprintf("Classes of %s", r.Dir), Text: fmt.Sprintf("The %s vertices.%s", split.Name, note),
		Table: &table.Table{Head: slices.Concat([]string{"class"}, runfolder.ClassHead[1:]), Rows: slices.Concat(classes, averages)},
	}}
	if len(split.PerClass.Confusion) > 0 {
		parts = append(parts, chart.Part{
			Title: fmt.Sprintf("Confusion matrix of %s", r.Dir),
			Text:  fmt.Sprintf("The %s vertices. A row is a class, a column the predicted class.", split.Name),
			Table: &table.Table{Head: slices.Concat([]string{"class"}, s.Classes), Rows: s.ConfusionTable(split.Metrics)},
		})
	}
	return parts
}
