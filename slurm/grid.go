package slurm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

// Axis is a flag of train with its values.
type Axis struct {
	Flag   string
	Values []string
}

// mostSettings is the maximal number of combinations of a grid.
const mostSettings = 10_000

var (
	flagName     = regexp.MustCompile(`^[a-z][a-z-]*$`)
	flagValue    = regexp.MustCompile(`^[A-Za-z0-9_.:=+-]+$`) // valid in the name of a folder, and in a script without quotes
	integerRange = regexp.MustCompile(`^(\d{1,18})\.\.(\d{1,18})$`)
)

// NewAxis parses the values of a flag: A,B,C. A value A..B stands for the integers from A to B. op
// names the operation in a fault.
func NewAxis(op, name, values string) (Axis, error) {
	a := Axis{Flag: strings.TrimPrefix(name, "--")}
	for word := range strings.SplitSeq(values, ",") {
		list := []string{word}
		if m := integerRange.FindStringSubmatch(word); m != nil {
			list = between(m[1], m[2])
		}
		for _, v := range list {
			if !flagValue.MatchString(v) {
				list = nil
			}
		}
		if !flagName.MatchString(a.Flag) || len(list) == 0 {
			return a, fault.New(fault.Usage, op, "", "%s=%s", name, values).
				Then("name a flag of train and its values, separated by commas, without spaces and slashes, such as seed=1,2,5..8")
		}
		a.Values = append(a.Values, list...)
	}
	return a, nil
}

// between returns the integers from one number to another, or none if there are more than a grid
// may have.
func between(from, to string) (list []string) {
	a, _ := strconv.Atoi(from)
	b, _ := strconv.Atoi(to)
	if b-a >= mostSettings {
		return nil
	}
	for ; a <= b; a++ {
		list = append(list, strconv.Itoa(a))
	}
	return list
}

// Setting is a combination: FLAG=VALUE of each axis.
type Setting []string

// String returns the setting as "seed=1 hidden=64".
func (s Setting) String() string { return strings.Join(s, " ") }

// Folder returns the name of the run folder, such as "seed=1,hidden=64".
func (s Setting) Folder() string { return strings.Join(s, ",") }

// Flags returns the flags of train.
func (s Setting) Flags() []string {
	list := make([]string, len(s))
	for i, v := range s {
		list[i] = "--" + v
	}
	return list
}

// Grid returns all combinations of the axes' values. The last axis varies fastest.
func Grid(op string, axes []Axis) ([]Setting, error) {
	all := []Setting{nil}
	for _, a := range axes {
		if len(all)*len(a.Values) > mostSettings {
			return nil, fault.New(fault.Usage, op, "", "more than %d combinations", mostSettings).Then("give fewer values")
		}
		var next []Setting
		for _, s := range all {
			for _, v := range a.Values {
				next = append(next, append(s[:len(s):len(s)], fmt.Sprintf("%s=%s", a.Flag, v)))
			}
		}
		all = next
	}
	return all, nil
}

// Varies reports whether another axis has values of the same flag and of the same part of it.
func (a Axis) Varies(b Axis) bool {
	part := func(a Axis) string {
		name, _, _ := strings.Cut(a.Values[0], "=")
		return name
	}
	isPart := strings.Contains(a.Values[0], "=") && strings.Contains(b.Values[0], "=")
	return a.Flag == b.Flag && (!isPart || part(a) == part(b))
}
