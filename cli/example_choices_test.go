package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// example is a file of docs/extending.md: its path, code, and the line that the page adds at the
// end of a table in another file. A test file has no line.
type example struct{ path, line, table, file, code string }

// examples returns the examples of docs/extending.md.
func examples(t *testing.T) (list []example) {
	t.Helper()
	page, err := os.ReadFile("docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile("(?s)`([a-z/_]+\\.go)`(?:, and `([^`]+)` at the end of `([^`]+)` in\\s`([^`]+)`)?:\n\n```go\n(.*?)```\n")
	for _, m := range form.FindAllStringSubmatch(string(page), -1) {
		list = append(list, example{m[1], m[2], m[3], m[4], m[5]})
	}
	return list
}

// withExamples returns the contents of the files that the page says to write or to edit. Each
// choice is one new file, or one and its test, and one line.
func withExamples(t *testing.T) map[string]string {
	t.Helper()
	changed, lines := map[string]string{}, 0
	for _, e := range examples(t) {
		changed[e.path] = e.code
		if e.line == "" {
			continue
		}
		lines++
		text, err := os.ReadFile(e.file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, found := strings.Cut(string(text), "var "+e.table+" = ")
		table, after, closed := strings.Cut(rest, "\n}")
		if !found || !closed {
			t.Fatalf("%s has no table %s", e.file, e.table)
		}
		changed[e.file] = before + "var " + e.table + " = " + table + "\n\t" + e.line + "\n}" + after
	}
	if lines != 4 {
		t.Fatalf("docs/extending.md has %d examples with a line for a table, want 4", lines)
	}
	return changed
}

// TestAddedChoices: half of the packages of codecs, policies, partitioners and importers pass their
// conformance tests with the examples of docs/extending.md.
func TestAddedChoices(t *testing.T) {
	dir, replace := t.TempDir(), map[string]string{}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range withExamples(t) {
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(root, name)] = to
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": replace})
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	packages := hosttest.ShareOf(t, 2, []string{"./halo/codec", "./halo/refresh", "./graph/importers", "./graph/partition"})
	goTest(t, root, append([]string{"test", "-trimpath", "-ldflags=-s -w", "-vet=off", "-short", "-overlay", file, "-run",
		"^Test(Names|RoundTrip|DamagedBlock|TaskCodec|NoAllocation|Timed|AssignBalances|EveryFormat|Import|Lies)$/(upper|odd|cyclic|lists)",
	}, packages...)...)
}

// TestAddedChoicesInACopy: a copy of the tree with the examples passes the whole tests of their
// packages, documents them, and imports, partitions, plans, trains and resumes with them.
func TestAddedChoicesInACopy(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("compiles the program: only with SIAFU_BIG=1")
	}
	dir := t.TempDir()
	copyTree(t, dir)
	for name, text := range withExamples(t) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goTest(t, dir, "test", "-trimpath", "./halo/codec", "./halo/refresh", "./graph/partition", "./graph/importers",
		"./ranks/tune", "./ranks/config")
	goTest(t, dir, "test", "-trimpath", "./ranks", "-run", "TestResumedIsNeverStopped/(odd|every|int4)$")
	goTest(t, dir, "test", "-trimpath", "./cli", "-run", "Documented", "-update")
	goTest(t, dir, "test", "-trimpath", "./cli", "-run", "Documented|TestNamesOfTheCommandLine|Completion")
	goTest(t, dir, "build", "-trimpath", "-o", "siafu-test", ".")
	var text strings.Builder
	for v := range 60 {
		fmt.Fprintf(&text, "%d;%d %d;%d %d\n", v%2, v%2, v%5, (v+2)%60, (v+7)%60)
	}
	if err := os.WriteFile(filepath.Join(dir, "ring.lists.txt"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	train := "train data --ranks 2 --servers 0 --partitioner cyclic --codec upper+zstd+ef --refresh odd --out run"
	for _, c := range []struct{ line, want string }{
		{"help codec", "upper: the upper 16 bits"},
		{"help refresh", "odd: rows are sent in odd epochs"},
		{"help partitioner", "cyclic: vertex v on rank v"},
		{"help from", "lists: .lists.txt"},
		{"train data --codec uper", "polyline[:DECIMALS], upper, with +s2"},
		{"train data --refresh od", "never, auto or odd"},
		{"completion bash", "debian lists csv"},
		{"import ring.lists.txt data --symmetrise", "format=lists"},
		{"partition data --parts 3 --method cyclic", "cyclic, 3 parts"},
		{"plan data --ranks 2 --partitioner cyclic --codec none,upper --refresh odd --all", "upper"},
		{train + " --epochs 3 --checkpoint-every 2e", "3"},
		{train + " --epochs 6 --resume auto", "6"},
		{"train data --ranks 3 --servers 0 --codec auto:int8 --epochs 3 --out automatic", "codec auto"},
	} {
		cmd := exec.Command("./siafu-test", strings.Fields(c.line)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if refused := strings.Contains(c.line, "uper") || strings.HasSuffix(c.line, " od"); (err != nil) != refused ||
			!strings.Contains(string(out), c.want) {
			t.Errorf("siafu %s: %v, without %q:\n%s", c.line, err, c.want, out)
		}
	}
	summary, err := os.ReadFile(filepath.Join(dir, "run", "summary.json"))
	if err != nil || !strings.Contains(string(summary), `"upper+zstd+ef"`) || !strings.Contains(string(summary), `"odd"`) {
		t.Errorf("the summary does not have the codec and the policy: %v\n%s", err, summary)
	}
}
