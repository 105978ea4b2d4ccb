package cli

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/packages.md")

// packageInfo has the first sentence of a package's comment and its imports from this program,
// for any build tags. Tests may import what they need.
type packageInfo struct {
	synopsis string
	imports  []string
}

// packages returns all packages of the program by path. The root is "siafu".
func packages(t *testing.T) map[string]*packageInfo {
	t.Helper()
	found := map[string]*packageInfo{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "build" || d.Name() == "runs"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Dir(path))
		if name == "." {
			name = "siafu"
		}
		if found[name] == nil {
			found[name] = new(packageInfo)
		}
		found[name].add(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// add adds what a file says.
func (p *packageInfo) add(file *ast.File) {
	if file.Doc != nil {
		p.synopsis = new(doc.Package).Synopsis(file.Doc.Text())
	}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if path, own := strings.CutPrefix(path, "siafu/"); own && !slices.Contains(p.imports, path) {
			p.imports = append(p.imports, path)
		}
	}
	slices.Sort(p.imports)
}

// TestPackagesAreListed compares docs/packages.md with the code.
func TestPackagesAreListed(t *testing.T) {
	const page = "docs/packages.md"
	found := packages(t)
	var b strings.Builder
	b.WriteString("# Packages\n\nThis page lists every package with the first sentence of its comment.\n" +
		"`go test ./internal/cli -run TestPackagesAreListed -update` writes it from the code.\n\n| package | purpose |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		p := found[path]
		if p.synopsis == "" {
			t.Errorf("package %s has no comment", path)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", path, strings.TrimSuffix(p.synopsis, ":"))
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != b.String() {
		t.Errorf("%s is not what the code says: run go test ./internal/cli -run TestPackagesAreListed -update", page)
	}
}

// below lists the top-level folders from which a package may import, besides its own folder.
var below = map[string][]string{
	"siafu":        {"internal/cli"},
	"bench":        {"cuda", "graph", "halo", "internal", "internal/cli", "kernels", "lambda", "ranks", "slurm"},
	"internal/cli": {"cuda", "graph", "internal", "lambda", "ranks", "slurm"},
	"slurm":        {"internal", "ranks"},
	"ranks":        {"cuda", "graph", "halo", "internal", "kernels", "lambda"},
	"lambda":       {"halo", "internal", "kernels"},
	"cuda":         {"internal", "kernels"},
	"halo":         {"graph", "internal", "kernels"},
	"kernels":      {"graph", "internal"},
	"graph":        {"internal"},
	"internal":     {},
}

// wing returns the folder of a package in below.
func wing(path string) string {
	if path == "internal/cli" || strings.HasPrefix(path, "internal/cli/") {
		return "internal/cli"
	}
	first, _, _ := strings.Cut(path, "/")
	return first
}

// TestLayers: packages import those of the folders below their own.
func TestLayers(t *testing.T) {
	for path, p := range packages(t) {
		from := wing(path)
		for _, imported := range p.imports {
			to := wing(imported)
			if to != from && !slices.Contains(below[from], to) {
				t.Errorf("%s imports %s: packages of %s import those of %v", path, imported, from, below[from])
			}
		}
	}
}

// closure returns the packages that programs import, directly or not.
func closure(all map[string]*packageInfo, programs ...string) map[string]bool {
	reached := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if p := all[path]; p != nil && !reached[path] {
			reached[path] = true
			for _, imported := range p.imports {
				visit(imported)
			}
		}
	}
	for _, path := range programs {
		visit(path)
	}
	return reached
}

// siafu does not contain packages that only siafu-bench needs.
func TestBenchStaysOut(t *testing.T) {
	for path := range closure(packages(t), "siafu", "lambda/function/bootstrap") {
		if wing(path) == "bench" || path == "ranks/simulate" {
			t.Errorf("siafu imports %s", path)
		}
	}
}

// TestSupportStaysOut: no program has a package in it that only tests need.
func TestSupportStaysOut(t *testing.T) {
	all := packages(t)
	reached := closure(all, "siafu", "bench/siafu-bench", "lambda/function/bootstrap")
	support := 0
	for path := range all {
		name := filepath.Base(path)
		if !strings.HasSuffix(name, "test") && !slices.Contains([]string{"cuda/ptx", "kernels/kerneltest/flat", "ranks/world/worldtest/slow", "graph/realdata"}, path) {
			continue
		}
		if support++; reached[path] {
			t.Errorf("the program imports %s", path)
		}
	}
	if support < 10 {
		t.Errorf("only %d packages of tests are found", support)
	}
}
