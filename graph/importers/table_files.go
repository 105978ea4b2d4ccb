package importers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/fault"
)

func (f *importer) hasEnding(name string) bool {
	return slices.ContainsFunc(f.endings, func(e string) bool { return strings.HasSuffix(name, e) })
}

// tableName returns the name of a table's file without its ending.
func tableName(file string) string {
	for _, e := range tableFormatOf(file).endings {
		if name, ok := strings.CutSuffix(file, e); ok {
			return name
		}
	}
	return file
}

// tableFormatOf returns the format of a file by its name, nil for the name of no table.
func tableFormatOf(name string) *importer {
	for _, f := range importFormats {
		if f.hasEnding(name) {
			return f
		}
	}
	return nil
}

// file returns a table: the named file, in SRC unless its path is absolute, or the file of SRC
// named nodes or edges.
func (f *importer) file(src input, named, called string) (table input, err error) {
	if filepath.IsAbs(named) {
		return input{src.op, named}, nil
	}
	if named != "" {
		return src.in(named), nil
	}
	for _, ending := range f.endings {
		if at := src.in(called + ending); at.exists() {
			return at, nil
		}
	}
	if _, err := os.Stat(src.path); err != nil {
		return table, fault.System(src.op, src.path, err)
	}
	if err := unreadTable(src, called); err != nil {
		return table, err
	}
	return table, fault.New(fault.Missing, src.op, src.path, "it has no file %s with an extension in %q", called, f.endings).
		Then("%s", nameTables(src.path))
}

// unreadEndings lists the endings of unsupported compressions and table formats.
var unreadEndings = []string{".bz2", ".xz", ".zip", ".lz4", ".xlsx", ".xls", ".ods", ".feather", ".arrow", ".orc", ".json", ".jsonl"}

// unreadTable returns the fault of a table with one of unreadEndings; nil if src has none.
func unreadTable(src input, called string) error {
	files, _ := os.ReadDir(src.path)
	for _, f := range files {
		name, ending := f.Name(), filepath.Ext(f.Name())
		if strings.HasPrefix(name, called+".") && slices.Contains(unreadEndings, ending) {
			return src.in(name).bad("%s files are not supported", ending).
				Then("unpack or convert it to .csv, .csv.gz, .csv.zst or .parquet")
		}
	}
	return nil
}

func tablesIn(src string) (names []string) {
	files, _ := os.ReadDir(src)
	for _, f := range files {
		if tableFormatOf(f.Name()) != nil {
			names = append(names, f.Name())
		}
	}
	return names
}

// nameTables returns advice on how to name tables that are not called nodes or edges.
func nameTables(src string) string {
	const most = 10
	names := tablesIn(src)
	switch info, err := os.Stat(src); {
	case err == nil && !info.IsDir():
		return fmt.Sprintf("give its folder as SRC, and name the tables with --nodes %s --edges FILE", filepath.Base(src))
	case len(names) == 0:
		return "name the tables with --nodes FILE --edges FILE"
	case len(names) > most:
		names = append(names[:most], "…")
	}
	remedy := "name the tables with --nodes FILE --edges FILE, out of " + strings.Join(names, ", ")
	if len(names) > 2 {
		remedy += "; tables of several kinds belong in the folders nodes and edges (docs/tutorials/several-tables.md)"
	}
	return remedy
}

// unrecognised returns the fault of a source that looks like none of the formats.
func unrecognised(o Options) error {
	if err := unreadTable(input{"import", o.Src}, "nodes"); err != nil {
		return err
	}
	if len(tablesIn(filepath.Join(o.Src, kindFolder))) > 0 {
		return fault.New(fault.Missing, "import", o.Src, "it has tables in the folder nodes, but none in a folder edges").
			Then("write each relation as a table edges/FROM__RELATION__TO.csv")
	}
	e := fault.New(fault.Data, "import", o.Src, "the format is not recognised")
	if tableFormatOf(o.Src) != nil || len(tablesIn(o.Src)) > 0 {
		return e.Then("%s", nameTables(o.Src))
	}
	return e.Then("name it with --from, one of %s", strings.Join(Names(), ", "))
}
