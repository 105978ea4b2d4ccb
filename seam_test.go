package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostReaders are the files that may take a matrix for memory of the host's
// (Mat.Host), because they have asked whether it is.
var hostReaders = []string{"halo/exchange.go", "halo/staged.go"}

// Layers, gathers, exchanges and all else of a run compute with kernels.Ops and
// read matrices through it: none calls a kernel on slices, or a matrix's Host.
func TestArithmeticGoesThroughOps(t *testing.T) {
	onSlices := teamFunctions(t)
	if !slices.Contains(onSlices, "MatMul") {
		t.Fatalf("no kernels are found: %v", onSlices)
	}
	for _, dir := range []string{"kernels/model", "halo", "ranks"} {
		eachFile(t, dir, func(path string, file *ast.File, at func(ast.Node) token.Position) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "kernels" && slices.Contains(onSlices, s.Sel.Name) {
					t.Errorf("%v: kernels.%s works on slices; call the method of kernels.Ops", at(n), s.Sel.Name)
				}
				if (s.Sel.Name == "Host" && len(call.Args) == 0 || s.Sel.Name == "HostHalf") && !slices.Contains(hostReaders, path) {
					t.Errorf("%v: a matrix is read where it may not lie; use kernels.Read or kernels.Fetch", at(n))
				}
				return true
			})
		})
	}
}

// teamFunctions are the functions of package kernels whose first argument is a
// Team.
func teamFunctions(t *testing.T) []string {
	t.Helper()
	var names []string
	eachFile(t, "kernels", func(path string, file *ast.File, _ func(ast.Node) token.Position) {
		if filepath.Dir(path) != "kernels" {
			return
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || len(f.Type.Params.List) == 0 {
				continue
			}
			if star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr); ok {
				if x, ok := star.X.(*ast.Ident); ok && x.Name == "Team" {
					names = append(names, f.Name.Name)
				}
			}
		}
	})
	return names
}

// eachFile parses the files of a folder and those below it, tests aside.
func eachFile(t *testing.T, dir string, look func(path string, file *ast.File, at func(ast.Node) token.Position)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		look(filepath.ToSlash(path), file, func(n ast.Node) token.Position { return set.Position(n.Pos()) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
