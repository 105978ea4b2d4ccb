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

// docs/commands.md describes every flag as the help does.
func TestCommandsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for command, table := range flagTables(t) {
		if !strings.Contains(string(text), table) {
			t.Errorf("docs/commands.md lacks the table of %s:\n%s", command, table)
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
