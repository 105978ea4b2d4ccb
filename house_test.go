package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// house is what docs/architecture.md says of the packages: a line each, from the
// top of the house down, with the packages that it imports.
type house struct {
	order   []string
	imports map[string][]string
}

// drawn reads the house from the list below "Imports" in docs/architecture.md.
func drawn(t *testing.T) house {
	t.Helper()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Imports\n")
	section, _, _ = strings.Cut(section, "\n## ")
	h := house{imports: map[string][]string{}}
	for line := range strings.Lines(section) {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "    ") || len(words) == 0 {
			continue
		}
		h.order = append(h.order, words[0])
		h.imports[words[0]] = words[1:]
	}
	return h
}

// built reads it from the code, whatever the build tags. Tests may import what
// they like.
func built(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "build" || d.Name() == "runs"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		here := name(filepath.Dir(path))
		list := imports[here]
		for _, i := range file.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if p, ours := strings.CutPrefix(p, "siafu/"); ours && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
		slices.Sort(list)
		imports[here] = list
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

func name(dir string) string {
	if dir == "." {
		return "siafu"
	}
	return filepath.ToSlash(dir)
}

// The drawing of the packages and their imports is the code's, and every arrow
// points down.
func TestTheHouseIsAsDrawn(t *testing.T) {
	h, code := drawn(t), built(t)
	for _, p := range h.order {
		if _, ok := code[p]; !ok {
			t.Errorf("docs/architecture.md draws %s, which is not there", p)
		}
	}
	for p, imports := range code {
		floor := slices.Index(h.order, p)
		if floor < 0 || !slices.Equal(h.imports[p], imports) {
			t.Errorf("docs/architecture.md should say:\n    %s", strings.TrimSpace(p+"  "+strings.Join(imports, " ")))
			continue
		}
		for _, i := range imports {
			if at := slices.Index(h.order, i); at >= 0 && at <= floor {
				t.Errorf("%s imports %s, which stands above it", p, i)
			}
		}
	}
}

// TestPackagesAreListed: the list of packages in docs/architecture.md has each package of the
// code once, with a description.
func TestPackagesAreListed(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	described := map[string]int{}
	for line := range strings.Lines(section) {
		if p, what, found := strings.Cut(strings.TrimSpace(line), "  "); found && strings.HasPrefix(line, "    ") {
			if described[p]++; strings.TrimSpace(what) == "" || described[p] > 1 {
				t.Errorf("docs/architecture.md lists %s twice or without a description", p)
			}
		}
	}
	code := built(t)
	for p := range described {
		if _, ok := code[p]; !ok {
			t.Errorf("docs/architecture.md lists %s, which does not exist", p)
		}
	}
	for p := range code {
		if described[p] == 0 {
			t.Errorf("docs/architecture.md must list %s below \"Packages\"", p)
		}
	}
}
