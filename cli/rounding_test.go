package cli

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// exactFolders are the packages whose bits reach models, datasets or decisions between
// computations.
var exactFolders = []string{
	"kernels", "kernels/model", "kernels/objective", "halo/codec", "halo/history", "halo/predict", "halo/refresh",
	"halo/sample", "ranks/params", "ranks/params/protocol", "graph", "graph/generate", "graph/importers", "graph/order", "graph/partition",
	"graph/partition/multilevel", "internal/elementary",
}

// TestProductsAreRounded: no product of floating-point numbers is an operand of a sum. The compiler
// may fuse both, and does so on arm64, so that processors would compute other bits. A
// conversion rounds the product: float32(x*y) + z. Function avx.FMA fuses on every processor. gonum's
// arithmetic is not rounded; package kernels has its own product of float32 in its place.
func TestProductsAreRounded(t *testing.T) {
	for _, folder := range exactFolders {
		for _, at := range unroundedProducts(t, folder) {
			t.Errorf("%s: a sum of a product that is not rounded; convert the product, or call avx.FMA", at)
		}
	}
}

// TestUnroundedProductsAreFound: the check can fail.
func TestUnroundedProductsAreFound(t *testing.T) {
	const file = `package p
type row struct{ x []float32 }
func f(r row, y, z float32, a, b float64, i, j int) (float32, float64, int) {
	z += r.x[0] * y
	z -= float32(y*z) + (y*r.x[1])
	return z - y*z, a + float64(a*b) + 2*b + float64(y)*float64(z), i*j + i
}`
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, "p.go", file, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := checkSums(set, []*ast.File{parsed}); len(found) != 3 {
		t.Errorf("found %v, not three products", found)
	}
}

// unroundedProducts returns the positions of such products in the files of a folder.
func unroundedProducts(t *testing.T, folder string) []string {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(folder, err)
	}
	set := token.NewFileSet()
	var (
		files []*ast.File
		found []string
	)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		for _, i := range f.Imports {
			if folder != "kernels" && strings.HasPrefix(i.Path.Value, `"gonum.org/`) {
				found = append(found, set.Position(i.Pos()).String())
			}
		}
	}
	return append(found, checkSums(set, files)...)
}

// absent imports empty packages: expressions with their functions have no type and are not checked.
type absent struct{}

func (absent) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

func checkSums(set *token.FileSet, files []*ast.File) (found []string) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: absent{}, Error: func(error) {}}
	config.Check("p", set, files, info)
	check := func(operands ...ast.Expr) {
		for _, e := range operands {
			if isUnrounded(info, e) {
				found = append(found, set.Position(e.Pos()).String())
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.ADD || n.Op == token.SUB) && info.Types[n].Value == nil {
					check(n.X, n.Y)
				}
			case *ast.AssignStmt:
				if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
					check(n.Rhs...)
				}
			}
			return true
		})
	}
	return found
}

// isUnrounded reports whether e is a product of variables that may be inexact.
func isUnrounded(info *types.Info, e ast.Expr) bool {
	p, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || p.Op != token.MUL || info.Types[p].Value != nil {
		return false
	}
	kind, ok := info.Types[p].Type.(*types.Basic)
	if !ok || kind.Info()&types.IsFloat == 0 {
		return false
	}
	exact := isWidened(info, p.X) && isWidened(info, p.Y)
	return !exact && !isPowerOfTwo(info, p.X) && !isPowerOfTwo(info, p.Y)
}

// isWidened reports whether e is float64 of a float32: the product of two is exact.
func isWidened(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	from, basic := info.Types[call.Args[0]].Type.(*types.Basic)
	return ok && name.Name == "float64" && basic && from.Kind() == types.Float32
}

// isPowerOfTwo reports whether e is a constant that a product does not round.
func isPowerOfTwo(info *types.Info, e ast.Expr) bool {
	value := info.Types[e].Value
	if value == nil {
		return false
	}
	v, _ := constant.Float64Val(constant.ToFloat(value))
	fraction, _ := math.Frexp(math.Abs(v))
	return fraction == 0.5 || v == 0
}
