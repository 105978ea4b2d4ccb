package cli

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siafu/graph/importers"
	"siafu/graph/partition"
	"siafu/halo/refresh"
	"siafu/internal/catalog"
	"siafu/ranks/tune"
)

// flagTables returns the tables of flags that docs/commands.md must hold, by
// command.
func flagTables(t *testing.T) map[string]string {
	t.Helper()
	tables := map[string]string{}
	for _, command := range describe().Leaves() {
		table := "| flag | default | |\n|---|---|---|\n"
		count := 0
		for _, f := range command.Flags {
			// The section of train describes the flags that these share with it.
			shares := slices.Contains([]string{"bench async", "bench breakdown", "bench epoch", "bench lambda", "plan"}, command.Path)
			if f.Name == "help" || shares && f.Group != "" {
				continue
			}
			count++
			value := f.Default
			if value != "" {
				value = "`" + value + "`"
			}
			table += fmt.Sprintf("| `--%s` | %s | %s |\n", f.Name, value, partOfHelp.ReplaceAllString(f.Help, "<br>`$1`:"))
		}
		if count > 0 {
			tables[command.Path] = table
		}
	}
	return tables
}

// partOfHelp matches the start of a paragraph of a flag's help that describes a part.
var partOfHelp = regexp.MustCompile(`\n\n([^ :]+):`)

// missing returns the lines of a table that a text has nowhere, each with the text's line of
// the same flag.
func missing(text, table string) string {
	list := ""
	for line := range strings.Lines(table) {
		if strings.Contains(text, "\n"+line) {
			continue
		}
		list += "+ " + line
		flag, _, _ := strings.Cut(line, " | ")
		if _, rest, ok := strings.Cut(text, "\n"+flag+" | "); ok {
			old, _, _ := strings.Cut(rest, "\n")
			list += "- " + flag + " | " + old + "\n"
		}
	}
	if list == "" {
		return "nothing, but its lines are in another order, or others between them; it is\n" + table
	}
	return list
}

// replaceTables replaces each table of flags in a text by the one of tables that has most
// flags in common with it.
func replaceTables(text string, tables []string) string {
	const head = "| flag | default | |\n"
	parts := strings.Split(text, head)
	for i, part := range parts[1:] {
		end := strings.Index(part+"\n", "\n\n") + 1
		old, best, most := part[:min(end, len(part))], "", 0
		for _, table := range tables {
			common := 0
			for line := range strings.Lines(table) {
				flag, _, _ := strings.Cut(line, " | ")
				if !strings.HasPrefix(flag, "| `--") || !strings.Contains(old, flag+" |") {
					continue
				}
				if common += 2; strings.Contains(old, line) {
					common++
				}
			}
			// Of two tables with equally many common flags, the shorter one fits better.
			if common > most || common == most && common > 0 && len(table) < len(best) {
				best, most = table, common
			}
		}
		if best != "" {
			parts[i+1] = strings.TrimPrefix(best, head) + part[len(old):]
		}
	}
	return strings.Join(parts, head)
}

// Errors of a table name the line.
func TestMissingLines(t *testing.T) {
	const table = "| `--a` |  | first |\n| `--b` | `1` | second |\n"
	for text, want := range map[string]string{
		"\n| `--a` |  | first |\n":                           "+ | `--b` | `1` | second |\n",
		"\n| `--a` |  | first |\n| `--b` | `2` | second |\n": "+ | `--b` | `1` | second |\n- | `--b` | `2` | second |\n",
		"\n| `--b` | `1` | second |\n| `--a` |  | first |\n": "nothing, but its lines are in another order, or others " +
			"between them; it is\n" + table,
	} {
		if got := missing(text, table); got != want {
			t.Errorf("of %q: %q", text, got)
		}
	}
}

// TestCommandsAreDocumented: docs/commands.md has the table of flags of each command. With
// -update it writes the tables.
func TestCommandsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := flagTables(t)
	if *update {
		text = []byte(replaceTables(string(text), slices.Collect(maps.Values(tables))))
		if err := os.WriteFile("docs/commands.md", text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for command, table := range tables {
		if !strings.Contains(string(text), table) {
			t.Errorf("docs/commands.md: the table of %s lacks:\n%s", command, missing(string(text), table))
		}
	}
}

// choiceTables are the tables of choices in documents: the page, the heading of the table, and
// its rows. A choice with a section of its name has a link to it.
var choiceTables = []struct {
	page, heading string
	choices       func() []catalog.Entry
}{
	{"docs/halo.md", "| codec | sent rows |", tune.Choices},
	{"docs/training.md", "| policy | ghost rows and their gradients |", refresh.Choices},
	{"docs/partitioning.md", "| method | algorithm and use |", partition.Choices},
	{"docs/importing.md", "| format | source |", importers.Choices},
}

// TestChoicesAreDocumented: documents have a table of the codecs, policies, partitioners and
// formats, as their packages describe them. With -update it writes the tables.
func TestChoicesAreDocumented(t *testing.T) {
	for _, d := range choiceTables {
		page, err := os.ReadFile(d.page)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(page), d.heading+"\n|---|---|\n")
		old, after, _ := strings.Cut(rest, "\n\n")
		var rows []string
		for _, c := range d.choices() {
			name := "`" + c.Form + "`"
			if strings.Contains(string(page), "\n## "+c.Name+"\n") {
				name = "[" + c.Name + "](#" + c.Name + ")"
			}
			rows = append(rows, "| "+name+" | "+c.Help+" |")
		}
		want := strings.Join(rows, "\n")
		if ok && *update {
			if err := os.WriteFile(d.page, []byte(before+d.heading+"\n|---|---|\n"+want+"\n\n"+after), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if old != want {
			t.Errorf("%s: the table %q is not that of the package; run go test ./cli -run %s -update", d.page, d.heading, t.Name())
		}
	}
}

// The README names no document that is not there.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "](")[1:] {
		link, _, _ := strings.Cut(part, ")")
		link, _, _ = strings.Cut(link, "#")
		if link == "" || strings.Contains(link, "://") {
			continue
		}
		if _, err := os.Stat(link); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
}
