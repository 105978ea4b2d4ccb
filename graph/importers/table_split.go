package importers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"siafu/graph"
)

func (im *tableImport) addSet(at int64, cells [][]byte) {
	set := uint8(graph.SplitNone)
	if im.split >= 0 {
		var known bool
		if set, known = setOf(cells[im.split]); !known {
			check(im.nodes.fault(at, im.split, cells[im.split], "is not a split").Then("write train, val or test, or leave the cell empty"))
		}
		column := im.label
		if im.targets != nil {
			column = im.targets.at[0]
		}
		if v := len(im.sets); set != graph.SplitNone && column >= 0 && im.classes.labels[v] == graph.Unlabelled {
			check(im.nodes.fault(at, column, nil, "is the label of a vertex in the %s set", splitNames[set]).
				Then("leave the split of vertices without a label empty"))
		}
	}
	im.sets = append(im.sets, set)
}

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

// usualSplit is the column of the split, if no flag names another.
const usualSplit = "split"

// findSplit finds the column of the split, or of the times to split by.
func (im *tableImport) findSplit(called string) {
	im.split = -1
	switch {
	case im.unlabelled:
	case im.SplitByTime != "":
		im.times = &times{column: im.nodes.needs(im.SplitByTime, "--split-by-time")}
	case im.asksForDraw():
	case im.Split != "":
		im.split = im.nodes.needs(im.Split, "--split")
	default:
		im.split = im.nodes.column(called)
	}
}

// chooseSplit splits by time, or makes a random split if the table has none.
func (im *tableImport) chooseSplit() {
	p := im.percentages(usual)
	switch {
	case im.times != nil:
		im.splitByTime(p)
		return
	case im.split >= 0, im.unlabelled, im.like != nil && !im.asksForDraw():
		return
	}
	im.sets = im.draw(im.classes.labels, usual)
	im.table.Split = fmt.Sprintf("drawn with seed %d: %s", im.Seed, p.inWords())
	if im.Stratify {
		im.table.Split += " of each class"
	}
}

// times has the times of the vertices, for a split by time.
type times struct {
	column  int
	values  []float64 // of the vertices, NaN for none: numbers, or of dates microseconds since 1970
	missing []rowOf   // vertices without a time
	dates   gap       // cells that are dates
	numbers gap       // cells that are numbers
	clocks  [2]gap    // dates with a time of day: without and with a time zone
}

type rowOf struct {
	vertex int
	at     int64
}

// add reads the time of a row's vertex. All times must have the same notation.
func (l *times) add(t *tableFile, at int64, cells [][]byte) {
	if l == nil {
		return
	}
	cell := cells[l.column]
	bad := func(remedy, format string, args ...any) {
		check(t.fault(at, l.column, cell, format, args...).Then("%s", remedy))
	}
	if len(cell) == 0 {
		l.missing = append(l.missing, rowOf{len(l.values), at})
		l.values = append(l.values, math.NaN())
		return
	}
	date, isDate := readInstant(cell, t.dateFormat(l.column, ""))
	value, kind, other := float64(date.micros), &l.dates, &l.numbers
	if !isDate {
		var isNumber bool
		if value, isNumber = number(cell); !isNumber {
			bad(writeDates+"; or write numbers", "is not a time")
		}
		kind, other = other, kind
	}
	if kind.add(at, cell); other.count > 0 {
		bad("write all times in one format", "is a time in another format than %s in %s %d", other.value, t.unit, other.at)
	}
	if date.clock && t.dateFormat(l.column, "") == "" {
		kind, other = &l.clocks[0], &l.clocks[1]
		if date.zone {
			kind, other = other, kind
		}
		if kind.add(at, cell); other.count > 0 {
			bad("write all times with a time zone, or all without", "and %s in %s %d: one has a time zone, the other has none",
				other.value, t.unit, other.at)
		}
	}
	l.values = append(l.values, value)
}

// print returns a time in the user's notation.
func (l *times) print(value float64) string {
	if l.numbers.count > 0 {
		return fmt.Sprint(value)
	}
	return instant{micros: int64(value)}.String()
}

// splitByTime puts the oldest labelled vertices into the training set, the next ones into
// the validation set and the newest into the test set. Vertices of one time are in one set.
func (im *tableImport) splitByTime(p percentages) {
	l, labels := im.times, im.classes.labels
	for _, m := range l.missing {
		if labels[m.vertex] != graph.Unlabelled {
			check(im.nodes.fault(m.at, l.column, nil, "is the time of a vertex with a label").
				Then("write its time, or leave its label empty"))
		}
	}
	if im.drawn != nil {
		*im.drawn = true
	}
	order := labelled(labels)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(l.values[a], l.values[b]) })
	begins, ok := p.cut(len(order), func(i int) bool { return l.values[order[i-1]] != l.values[order[i]] })
	im.nodes.require(ok, "name a column with more times, or leave --split-by-time out",
		"%s: the %d labelled vertices have fewer than three different times", im.nodes.called(l.column), len(order))
	from := ""
	for k, set := range [...]uint8{graph.SplitTrain, graph.SplitVal, graph.SplitTest} {
		for _, v := range order[begins[k]:begins[k+1]] {
			im.sets[v] = set
		}
		from += fmt.Sprintf(", %s from %s on", splitNames[set], l.print(l.values[order[begins[k]]]))
	}
	im.table.Split = fmt.Sprintf("by the time in %s: %s%s", im.SplitByTime, p.inWords(), from)
	im.Log("split=by_time column=%s train=%d val=%d test=%d%s", im.SplitByTime, begins[1], begins[2]-begins[1], begins[3]-begins[2], from)
}

// cut divides count places into three non-empty sets of about these percentages: set k has the
// places from begins[k] to begins[k+1]. A set starts only where mayBegin is true. ok is false
// if there are fewer than two such places.
func (p percentages) cut(count int, mayBegin func(place int) bool) (begins [4]int, ok bool) {
	var places []int
	for i := 1; i < count; i++ {
		if mayBegin(i) {
			places = append(places, i)
		}
	}
	if len(places) < 2 {
		return begins, false
	}
	nearest := func(places []int, percent float64) int {
		wanted, best := math.Ceil(percent*float64(count)/100), 0
		for i, place := range places {
			if math.Abs(float64(place)-wanted) < math.Abs(float64(places[best])-wanted) {
				best = i
			}
		}
		return best
	}
	k := nearest(places[:len(places)-1], p.train)
	after := places[k+1:]
	return [4]int{0, places[k], after[nearest(after, p.train+p.val)], count}, true
}
