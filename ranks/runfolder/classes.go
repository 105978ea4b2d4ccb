package runfolder

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"siafu/kernels/objective"
)

// Limits of WriteClasses.
const (
	shownClasses = 20 // classes in the table
	shownMatrix  = 10 // classes in the confusion matrix
)

// ClassHead is the head of a ClassTable.
var ClassHead = []string{"", "precision", "recall", "f1-score", "support"}

// ClassTable returns the rows of scikit-learn's classification_report for metrics of s. It has a
// row for each class that occurs among labels or predictions, at most most of them, and rows with
// the averages over all classes. shown and all count the classes.
func (s *Scores) ClassTable(m *objective.Metrics, most int) (classes, averages [][]string, shown, all int) {
	p := m.PerClass
	all = max(s.OfClasses, len(p.Support))
	for _, c := range mostFrequent(p.Support, most) {
		if p.Support[c]+p.Predicted[c] > 0 || m.Accuracy == nil {
			classes = append(classes, cells(s.Classes[c], p.Precision[c], p.Recall[c], p.F1[c], p.Support[c]))
		}
		shown++
	}
	var support int64
	for _, n := range p.Support {
		support += n
	}
	if m.Accuracy != nil {
		support = m.Vertices
		averages = append(averages, []string{"accuracy", "", "", decimal(*m.Accuracy), strconv.FormatInt(support, 10)})
	} else {
		averages = append(averages, average("micro avg", p.MicroAvg, support))
	}
	return classes, append(averages, average("macro avg", p.MacroAvg, support), average("weighted avg", p.WeightedAvg, support)), shown, all
}

func average(name string, a objective.Average, support int64) []string {
	return cells(name, a.Precision, a.Recall, a.F1, support)
}

func cells(name string, precision, recall, f1 float64, support int64) []string {
	return []string{name, decimal(precision), decimal(recall), decimal(f1), strconv.FormatInt(support, 10)}
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }

// WriteClasses writes the ClassTable of the last split in the format of classification_report. If
// there are few classes, it also writes the confusion matrix. Tasks without classes have no output.
func (s *Scores) WriteClasses(w io.Writer) {
	splits := s.Splits()
	if len(splits) == 0 || splits[0].PerClass == nil {
		return
	}
	last := splits[len(splits)-1]
	m, split := last.Metrics, last.Name
	classes, averages, shown, all := s.ClassTable(m, shownClasses)
	fmt.Fprintf(w, "classes of the %s vertices", split)
	if shown < all {
		fmt.Fprintf(w, ": the %d largest of %d", shown, all)
	}
	fmt.Fprintf(w, "\n%s", aligned([][]string{ClassHead}, classes, averages))
	if n := len(m.PerClass.Confusion); n > 0 && n <= shownMatrix {
		head := []string{""}
		for _, name := range s.Classes {
			head = append(head, printable(name, cellWidth))
		}
		fmt.Fprintf(w, "\nconfusion matrix of the %s vertices: a row is a class, a column the predicted class\n%s", split,
			aligned([][]string{head}, s.ConfusionTable(m)))
	}
}

// ConfusionTable returns the rows of the confusion matrix. The first cell of a row is the name of
// its class.
func (s *Scores) ConfusionTable(m *objective.Metrics) [][]string {
	var rows [][]string
	for c, counts := range m.PerClass.Confusion {
		row := []string{s.Classes[c]}
		for _, n := range counts {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, row)
	}
	return rows
}

// Widths of columns in characters.
const (
	nameWidth = len("weighted avg")
	mostName  = 30 // maximal width of a name
	cellWidth = len("precision")
)

// aligned formats blocks of rows in right-aligned columns, with an empty line between blocks.
func aligned(blocks ...[][]string) string {
	first, other := nameWidth, cellWidth
	for _, block := range blocks {
		for _, row := range block {
			row[0] = printable(row[0], mostName)
			first = max(first, len([]rune(row[0])))
			for _, cell := range row[1:] {
				other = max(other, len([]rune(cell)))
			}
		}
	}
	var text strings.Builder
	for _, block := range blocks {
		for _, row := range block {
			fmt.Fprintf(&text, "%*s ", first, row[0])
			for _, cell := range row[1:] {
				fmt.Fprintf(&text, " %*s", other, cell)
			}
			text.WriteByte('\n')
		}
		text.WriteByte('\n')
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// printable replaces the control characters of a name, and shortens it to at most most characters.
func printable(name string, most int) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
	if r := []rune(name); len(r) > most {
		name = string(r[:most-1]) + "…"
	}
	return name
}
