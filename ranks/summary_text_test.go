package ranks

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTextOutput: with --log-format text the terminal gets aligned lines of at most 100
// columns, and the log the same key=value lines as with fields.
func TestTextOutput(t *testing.T) {
	t.Parallel()
	data, out := generated(t, false), map[string]string{}
	for _, format := range []string{logText, "fields", logAuto} {
		c := quick(t)
		c.Quiet, c.LogFormat, c.Epochs, c.Ranks = false, format, 3, 2
		var said bytes.Buffer
		if err := Train(context.Background(), c, data, IO{Out: &said, Err: &said}); err != nil {
			t.Fatal(err)
		}
		out[format] = said.String()
		log, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
		if err != nil || !strings.Contains(string(log), "\ntrained dataset=") || !strings.Contains(string(log), "\nworld kind=") {
			t.Errorf("%s: the log lacks lines: %v\n%s", format, err, log)
		}
	}
	for _, want := range []string{"graph     ", " vertices, ", "synthetic: accuracies", "network   gcn ", "\ntrained   3 epochs in ",
		"\nacc       test 0.", "summary.json\n"} {
		if !strings.Contains(out[logText], want) {
			t.Errorf("no %q in\n%s", want, out[logText])
		}
	}
	for line := range strings.Lines(out[logText]) {
		if n := utf8.RuneCountInString(line) - 1; n > 100 && !strings.Contains(line, os.TempDir()) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(out[logText], "dataset=") {
		t.Errorf("key=value lines in text:\n%s", out[logText])
	}
	for _, format := range []string{"fields", logAuto} { // a buffer is no terminal
		if !strings.Contains(out[format], "\ntrained dataset=") || strings.Contains(out[format], "trained   ") {
			t.Errorf("%s:\n%s", format, out[format])
		}
	}
}
