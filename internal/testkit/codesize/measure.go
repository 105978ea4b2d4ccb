package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	widest   = 140 // columns of a line
	tabWidth = 4
	manual   = "docs/commands.md"
)

// measure counts the files of a folder that git tracks. A file that the working tree lacks is
// left out.
func measure(dir string) (s size, err error) {
	cmd := exec.Command("git", "ls-files", "-z", "--", "*.go", "*.s")
	cmd.Dir = dir
	tracked, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("cannot list the files that git tracks: %w. Run it in a git working tree", err)
	}
	var folders [kinds]map[string]bool
	for k := range folders {
		folders[k] = map[string]bool{}
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(tracked), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, err
		}
		k, c, err := measureFile(name, text)
		if err != nil {
			return s, err
		}
		folders[k][path.Dir(name)] = true
		sum := s.rows[k].fields()
		for i, n := range c.fields() {
			*sum[i] += *n
		}
	}
	for k := range folders {
		s.rows[k].packages = len(folders[k])
	}
	s.flags, err = countFlags(filepath.Join(dir, manual))
	return s, err
}

// measureFile counts one file.
func measureFile(name string, text []byte) (kind, counts, error) {
	c := counts{files: 1, lines: len(split(text))}
	if path.Ext(name) == ".s" {
		for _, line := range split(text) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
				c.code++
			}
		}
		return generated, c, nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return 0, c, err
	}
	k := kindOf(name, file)
	c.code, c.long = countCode(text), countLong(text, set, file)
	if k != tests && file.Name.Name != "main" {
		c.exported = countExported(file)
	}
	return k, c, nil
}

// kindOf returns the kind of a Go file.
func kindOf(name string, file *ast.File) kind {
	switch {
	case ast.IsGenerated(file):
		return generated
	case strings.HasSuffix(name, "_test.go"):
		return tests
	case strings.HasPrefix(name, "internal/testkit/") || strings.Contains("/"+name, "/testdata/"):
		return support
	}
	return product
}

// split returns the lines of a text.
func split(text []byte) [][]byte {
	if len(text) == 0 {
		return nil
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

// countCode counts lines with a part of a token. A raw string can have several lines.
func countCode(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines, last, code := split(text), 0, 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return code
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // not in the text
		}
		begin := file.Line(pos)
		for line := max(begin, last+1); line <= begin+strings.Count(literal, "\n"); line++ {
			if len(bytes.TrimSpace(lines[line-1])) > 0 {
				code++
			}
			last = line
		}
	}
}

// countLong counts lines above the widest that have no struct tag.
func countLong(text []byte, set *token.FileSet, file *ast.File) (long int) {
	tagged := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			for line := set.Position(field.Tag.Pos()).Line; line <= set.Position(field.Tag.End()).Line; line++ {
				tagged[line] = true
			}
		}
		return true
	})
	for i, line := range split(text) {
		if utf8.RuneCount(line)+(tabWidth-1)*bytes.Count(line, []byte("\t")) > widest && !tagged[i+1] {
			long++
		}
	}
	return long
}

// countExported counts exported declarations.
func countExported(file *ast.File) (n int) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() {
							n++
						}
					}
				}
			}
		}
	}
	return n
}

// receiver returns the name of a receiver's type, which can be a pointer and have parameters.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// countFlags counts the rows of the table of flags of siafu train.
func countFlags(page string) (n int, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return 0, err
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#"):
			inside = strings.HasPrefix(line, "## siafu train")
		case inside && strings.HasPrefix(line, "| `--"):
			n++
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%s: no table of flags under %q", page, "## siafu train")
	}
	return n, nil
}
