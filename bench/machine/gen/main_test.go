package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The assembly in the tree is what the generator makes.
func TestAssemblyIsGenerated(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("go", "run", ".", "-out", filepath.Join(dir, "asm_amd64.s"), "-stubs", filepath.Join(dir, "asm_amd64.go"),
		"-pkg", "machine").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"asm_amd64.s", "asm_amd64.go"} {
		if made, stored := body(t, filepath.Join(dir, name)), body(t, filepath.Join("..", name)); made != stored || made == "" {
			t.Errorf("%s is not what the generator makes: run go generate ./bench/machine", name)
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
