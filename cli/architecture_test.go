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

// packages returns all packages of the tree by path. The root is "siafu".
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

// isSupport reports whether a package is for tests only.
func isSupport(path string) bool { return strings.HasPrefix(path, "internal/testkit/") }

// TestPackagesAreListed compares docs/packages.md with the code.
func TestPackagesAreListed(t *testing.T) {
	const page = "docs/packages.md"
	found := packages(t)
	var b strings.Builder
	b.WriteString("# Packages\n\nThis page lists every package of the programs with the first sentence of its comment.\n" +
		"Packages that only tests and checks use are in `internal/testkit`.\n" +
		"`go test ./cli -run TestPackagesAreListed -update` writes it from the code.\n\n| package | purpose |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		p := found[path]
		if p.synopsis == "" {
			t.Errorf("package %s has no comment", path)
		}
		if isSupport(path) {
			continue
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
		t.Errorf("%s is not what the code says: run go test ./cli -run TestPackagesAreListed -update", page)
	}
}

// below lists the top-level folders from which a package may import, besides its own folder.
var below = map[string][]string{
	"siafu":    {"cli"},
	"bench":    {"cli", "cuda", "graph", "halo", "internal", "kernels", "lambda", "ranks", "slurm"},
	"cli":      {"cuda", "graph", "internal", "lambda", "ranks", "slurm"},
	"slurm":    {"internal", "ranks"},
	"ranks":    {"cuda", "graph", "halo", "internal", "kernels", "lambda"},
	"lambda":   {"halo", "internal", "kernels"},
	"cuda":     {"internal", "kernels"},
	"halo":     {"graph", "internal", "kernels"},
	"kernels":  {"graph", "internal"},
	"graph":    {"internal"},
	"internal": {},
}

// wing returns the folder of a package in below.
func wing(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

// TestLayers: packages import those of the folders below their own. Test support imports any.
func TestLayers(t *testing.T) {
	for path, p := range packages(t) {
		if isSupport(path) {
			continue
		}
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

// TestSupportStaysOut: internal/testkit has the packages that no program has in it, and only those.
// The generator of assembly is a program, too.
func TestSupportStaysOut(t *testing.T) {
	all := packages(t)
	reached := closure(all, "siafu", "bench/siafu-bench", "lambda/function/bootstrap", "kernels/internal/avx/gen")
	for path := range all {
		switch {
		case isSupport(path) && reached[path]:
			t.Errorf("a program imports %s", path)
		case !isSupport(path) && !reached[path]:
			t.Errorf("no program imports %s: move it to internal/testkit", path)
		}
	}
	if len(reached) < 50 {
		t.Errorf("only %d packages are in the programs", len(reached))
	}
}
