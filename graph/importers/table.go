package importers

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/size"
)

// tableFile is rows of named columns in a file, of CSV or Parquet.
type tableFile struct {
	input
	unit  string   // of positions: "line" or "row"
	names []string // of the columns; "" where one has none
	units []string // of columns of dates as numbers, "" for others; nil: unknown
	// each calls yield with every row in the order of the file: its position from 1 and a cell
	// for each column, empty if the value is missing, valid until yield returns. It may be
	// called again. A fault ends the import.
	each func(yield func(at int64, cells [][]byte))
}

// fault returns a fault about a cell, with its position, column and value.
func (t *tableFile) fault(at int64, column int, value []byte, format string, args ...any) *fault.Error {
	return t.bad("%s %d %s: %.60q "+format,
		append([]any{t.unit, at, t.called(column), value}, args...)...)
}

// called returns the number of a column, and its name if it has one.
func (t *tableFile) called(column int) string {
	if t.names[column] == "" {
		return fmt.Sprintf("column %d", column+1)
	}
	return fmt.Sprintf("column %d (%s)", column+1, t.names[column])
}

// dateFormat returns the format of the dates in a column: the file's, or else the given one.
func (t *tableFile) dateFormat(column int, format string) string {
	if t.units != nil && t.units[column] != "" {
		return t.units[column]
	}
	return format
}

func (t *tableFile) rowFault(at int64, format string, args ...any) *fault.Error {
	return t.bad("%s %d "+format, append([]any{t.unit, at}, args...)...)
}

// column returns the index of the column with a name, -1 if there is none.
func (t *tableFile) column(name string) int { return slices.Index(t.names, name) }

// needs returns the index of a required column, named by a flag.
func (t *tableFile) needs(name, flag string) int {
	i := t.column(name)
	if i < 0 {
		t.require(false, "name the column with "+flag, "%s 1: there is no column %q; the columns are: %s", t.unit, name, t.list())
	}
	return i
}

// list returns the names of the columns, shortened to a readable length.
func (t *tableFile) list() string {
	const most = 20
	names := slices.Clone(t.names)
	for i, name := range names {
		if name == "" {
			names[i] = t.called(i)
		}
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

// checkColumns refuses more columns than the memory has room for, before anything is allocated for
// each of them.
func (t *tableFile) checkColumns(count int) {
	const values = 1 << 10 // for the values of a column with few of them
	check(host.RequireMemory(t.op, t.path, size.Product(int64(count), int64(unsafe.Sizeof(profile{}))+values),
		fmt.Sprintf("remove some of its %d columns", count)))
}

func (t *tableFile) checkNames() {
	first := make(map[string]int, len(t.names))
	for i, name := range t.names {
		if before, twice := first[name]; twice && name != "" {
			t.require(false, "give each column a unique name",
				"%s 1: the columns %d and %d are both called %q", t.unit, before+1, i+1, name)
		}
		first[name] = i
	}
}
