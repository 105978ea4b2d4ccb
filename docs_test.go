package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// flagTables are the tables of flags that docs/commands.md must hold, by
// command.
func flagTables(t *testing.T) map[string]string {
	t.Helper()
	var g grammar
	parser, err := kong.New(&g)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{}
	for _, command := range parser.Model.Leaves(true) {
		table := "| flag | default | |\n|---|---|---|\n"
		count := 0
		for _, f := range command.Flags {
			// What these share with train is described there.
			shares := slices.Contains([]string{"bench async", "bench breakdown", "bench codecs", "bench epoch", "bench lambda", "plan"}, command.Path())
			if f.Name == "help" || shares && f.Group != nil {
				continue
			}
			count++
			value := f.Default
			if value != "" {
				value = "`" + value + "`"
			}
			table += fmt.Sprintf("| `--%s` | %s | %s |\n", f.Name, value, f.Help)
		}
		if count > 0 {
			tables[command.Path()] = table
		}
	}
	return tables
}

// missing are the lines of a table that a text has nowhere, each with the text's line of
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

// What is wrong with a table is told by line.
func TestMissingLines(t *testing.T) {
	const table = "| `--a` |  | first |\n| `--b` | `1` | second |\n"
	for text, want := range map[string]string{
		"\n| `--a` |  | first |\n":                           "+ | `--b` | `1` | second |\n",
		"\n| `--a` |  | first |\n| `--b` | `2` | second |\n": "+ | `--b` | `1` | second |\n- | `--b` | `2` | second |\n",
		"\n| `--b` | `1` | second |\n| `--a` |  | first |\n": "nothing, but its lines are in another order, or others between them; it is\n" + table,
	} {
		if got := missing(text, table); got != want {
			t.Errorf("of %q: %q", text, got)
		}
	}
}

// docs/commands.md describes every flag as the help does.
func TestCommandsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for command, table := range flagTables(t) {
		if !strings.Contains(string(text), table) {
			t.Errorf("docs/commands.md: the table of %s lacks:\n%s", command, missing(string(text), table))
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
		if strings.Contains(link, "://") {
			continue
		}
		if _, err := os.Stat(link); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
}
