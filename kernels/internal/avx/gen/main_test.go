package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAssemblyIsGenerated compares the assembly in the tree with the output of its go:generate lines.
func TestAssemblyIsGenerated(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "gen")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(text)) {
		args, found := strings.CutPrefix(strings.TrimSpace(line), "//go:generate go run ./gen ")
		if !found {
			continue
		}
		words := strings.Fields(args)
		cmd := exec.Command(program, words...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		for _, name := range words {
			if !strings.HasPrefix(name, "asm_") {
				continue
			}
			if compared++; body(t, filepath.Join(dir, name)) != body(t, filepath.Join("..", name)) {
				t.Errorf("%s is not what the generator makes: run go generate ./kernels/internal/avx", name)
			}
		}
	}
	if compared == 0 {
		t.Error("doc.go has no go:generate line")
	}
}

// body returns a generated file without its first line, which has the command.
func body(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "\n")
	return body
}
