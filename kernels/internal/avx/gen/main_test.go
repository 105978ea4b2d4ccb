package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// AVX2 has 16 registers. An instruction on another 256-bit register needs AVX-512.
func TestRegistersOfAVX2(t *testing.T) {
	files, err := filepath.Glob("../asm_*.s")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	above := regexp.MustCompile(`\bY(1[6-9]|[23][0-9])\b`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		routine := ""
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "TEXT") {
				routine = line
			}
			if strings.Contains(routine, "256(SB)") && above.MatchString(line) {
				t.Errorf("%s: %s%s", name, routine, line)
				break
			}
		}
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
