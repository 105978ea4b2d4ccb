package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A step is a command of a page and the lines that it must print.
type step struct {
	command string
	prints  []string
}

// Follow runs the commands of a Markdown page in the working directory, in order, where
// program is siafu. Commands are lines of code that begin with "…" matches anything.
func Follow(t *testing.T, page, program string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(string(text))
	if len(steps) == 0 {
		t.Fatalf("%s has no commands", page)
	}
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "siafu")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, s := range steps {
		out, err := exec.Command("bash", "-c", s.command).CombinedOutput()
		if err != nil {
			t.Fatalf("$ %s\n%v\n%s", s.command, err, out)
		}
		printed := "\n" + normalize(string(out)) + "\n"
		for _, want := range s.prints {
			if !pattern(want).MatchString(printed) {
				t.Errorf("$ %s\ndoes not print %q but\n%s", s.command, want, out)
			}
		}
	}
}

func stepsOf(page string) (steps []step) {
	below := false // whether the line follows a command of the same code block
	for line := range strings.SplitSeq(page, "\n") {
		code, isCode := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(code, "$ ")
		last := len(steps) - 1
		switch {
		case !isCode:
			below = false
		case isCommand:
			steps, below = append(steps, step{command: command}), true
		case !below:
		case len(steps[last].prints) == 0 && strings.HasSuffix(steps[last].command, `\`):
			steps[last].command += "\n" + code
		default:
			steps[last].prints = append(steps[last].prints, code)
		}
	}
	return steps
}

var (
	numbers = regexp.MustCompile(`-?\d+(\.\d+)?(e[-+]\d+)?`)
	blanks  = regexp.MustCompile(`[ \t]+`)
)

// normalize replaces all numbers by the same number and all blanks by single ones.
func normalize(text string) string {
	return blanks.ReplaceAllString(numbers.ReplaceAllString(text, "0"), " ")
}

// pattern returns an expression that finds a line of a page in normalized output.
func pattern(line string) *regexp.Regexp {
	parts := strings.Split(strings.TrimSpace(normalize(line)), "…")
	for k := range parts {
		parts[k] = regexp.QuoteMeta(parts[k])
	}
	return regexp.MustCompile(`\n ?` + strings.Join(parts, `[^\n]*`) + ` ?\n`)
}
