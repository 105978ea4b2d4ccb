package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// The container files are valid, as far as can be checked without a builder: existing
// instructions and sections, files of this tree, targets of its Makefile.
func TestContainerFiles(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(t *testing.T, lines []string) (commands, files []string){
		"packaging/Dockerfile": dockerfile, "packaging/siafu.def": definition,
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		commands, files := read(t, strings.Split(string(text), "\n"))
		for _, f := range files {
			if _, err := os.Stat(f); err != nil {
				t.Errorf("%s copies %v", name, err)
			}
		}
		made := false
		for _, m := range regexp.MustCompile(`make ([a-z-]+)`).FindAllStringSubmatch(strings.Join(commands, "\n"), -1) {
			made = true
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no %s", name, m[1])
			}
		}
		if !made || len(files) == 0 {
			t.Errorf("%s builds nothing: %q %q", name, commands, files)
		}
	}
}

// dockerfile takes instructions apart, each on one line.
func dockerfile(t *testing.T, lines []string) (commands, files []string) {
	stages := []string{}
	for n, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		fields := strings.Fields(rest)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case word == "FROM" && len(fields) > 0:
			if stages = append(stages, ""); len(fields) == 3 && fields[1] == "AS" {
				stages[len(stages)-1] = fields[2]
			}
		case len(stages) == 0:
			t.Errorf("line %d: before FROM: %s", n+1, line)
		case word == "RUN":
			commands = append(commands, rest)
		case word == "COPY" && strings.HasPrefix(rest, "--from="):
			if from, _, _ := strings.Cut(strings.TrimPrefix(rest, "--from="), " "); !slices.Contains(stages, from) {
				t.Errorf("line %d: there is no stage %s", n+1, from)
			}
		case word == "COPY" && len(fields) > 1:
			files = append(files, fields[:len(fields)-1]...)
		case word == "WORKDIR" && len(fields) == 1, word == "ENTRYPOINT" && strings.HasPrefix(rest, "["):
		default:
			t.Errorf("line %d: %s", n+1, line)
		}
	}
	return commands, files
}

// definition takes the sections of an Apptainer definition apart.
func definition(t *testing.T, lines []string) (commands, files []string) {
	known := []string{"", "%files", "%files from build", "%post", "%runscript", "%help"}
	section := ""
	for n, line := range lines {
		field := strings.TrimSpace(line)
		switch {
		case field == "" || strings.HasPrefix(field, "#"):
		case strings.HasPrefix(line, "Bootstrap: "):
			section = ""
		case strings.HasPrefix(line, "%"):
			if section = field; !slices.Contains(known, section) {
				t.Errorf("line %d: %s", n+1, line)
			}
		case section == "" && !regexp.MustCompile(`^(From|Stage): \S+$`).MatchString(line):
			t.Errorf("line %d: %s", n+1, line)
		case section == "%files":
			files = append(files, strings.Fields(field)[0])
		case section == "%post":
			commands = append(commands, field)
		}
	}
	return commands, files
}

// The same tree at any path makes the same bytes, and the packaged program runs.
func TestDist(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("takes minutes: make test-long")
	}
	var sums []string
	for range 2 {
		tree := filepath.Join(t.TempDir(), "tree")
		if out, err := exec.Command("git", "clone", "-q", ".", tree).CombinedOutput(); err != nil {
			t.Skipf("no clone of this tree: %v %s", err, out)
		}
		cmd := exec.Command("make", "dist")
		cmd.Dir = tree
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(tree, "build/dist/SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
		unpacked := t.TempDir()
		archives, _ := filepath.Glob(filepath.Join(tree, "build/dist/*-linux-amd64.tar.gz"))
		for _, a := range archives {
			if out, err := exec.Command("tar", "-C", unpacked, "-xzf", a).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			program, _ := filepath.Glob(filepath.Join(unpacked, "*/siafu"))
			if out, err := exec.Command(program[0], "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "siafu ") {
				t.Errorf("%v %s", err, out)
			}
			if out, err := exec.Command(program[0], "doctor").
				CombinedOutput(); !strings.Contains(string(out), "lib/siafu/bootstrap available=true") {
				t.Errorf("no function: %v %s", err, out)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the same tree made\n%sand\n%s", sums[0], sums[1])
	}
}
