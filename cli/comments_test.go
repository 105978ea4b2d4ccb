package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declared adds the names that a file declares: functions, types, variables, methods, and the
// members of structs and interfaces.
func declared(file *ast.File, add func(name string, doc *ast.CommentGroup, exported bool)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Name.Name, d.Doc, d.Name.IsExported())
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					doc := s.Doc
					if doc == nil && !d.Lparen.IsValid() {
						doc = d.Doc
					}
					add(s.Name.Name, doc, s.Name.IsExported())
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name.Name, nil, false)
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, name := range m.Names {
					add(name.Name, m.Doc, name.IsExported())
				}
			}
		case *ast.StructType:
			for _, f := range n.Fields.List {
				for _, name := range f.Names {
					add(name.Name, nil, false)
				}
			}
		}
		return true
	})
}

// parseAll parses the program's files, tests too.
func parseAll(t *testing.T, visit func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (d.Name()[0] == '.' || d.Name() == "build" || d.Name() == "runs"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			visit(path, files, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCommentsNameWhatTheyDescribe: the comment of an exported function, type or method of an
// interface begins with its name.
func TestCommentsNameWhatTheyDescribe(t *testing.T) {
	parseAll(t, func(path string, files *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		declared(file, func(name string, doc *ast.CommentGroup, exported bool) {
			if doc == nil || !exported {
				return
			}
			words := strings.Fields(doc.Text())
			if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
				words = words[1:]
			}
			if len(words) > 0 && strings.TrimRight(words[0], ",.:;") != name {
				t.Errorf("%v: the comment of %s begins with %q", files.Position(doc.Pos()), name, words[0])
			}
		})
	})
}

// goName is a name in code as documents write it: package or type, a dot, and what it has.
var goName = regexp.MustCompile("`([A-Za-z]+)\\.([A-Za-z]\\w*)(?:\\.([A-Za-z]\\w*))?(?:\\(\\))?`")

// extensions are those of files that documents name.
var extensions = []string{"go", "h", "cu", "md", "py", "npy", "json", "jsonl", "toml", "csv", "txt", "safetensors"}

// TestNamesInDocuments: what documents write as `package.Name` or `Type.Name` is declared.
func TestNamesInDocuments(t *testing.T) {
	packages, types, names := map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}
	parseAll(t, func(path string, _ *token.FileSet, file *ast.File) {
		p := packages[file.Name.Name]
		if p == nil {
			p = map[string]bool{}
			packages[file.Name.Name] = p
		}
		declared(file, func(name string, _ *ast.CommentGroup, _ bool) { p[name], names[name] = true, true })
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				types[s.Name.Name] = true
			}
			return true
		})
	})
	checked := 0
	for _, page := range []string{"docs/architecture.md", "docs/extending.md", "docs/models.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goName.FindAllStringSubmatch(string(text), -1) {
			p, isPackage := packages[m[1]]
			switch {
			case slices.Contains(extensions, m[2]):
			case isPackage:
				if checked++; !p[m[2]] || m[3] != "" && !names[m[3]] {
					t.Errorf("%s: %s is not declared", page, m[0])
				}
			case types[m[1]]:
				if checked++; !names[m[2]] {
					t.Errorf("%s: %s is not declared", page, m[0])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d names are checked", checked)
	}
}
