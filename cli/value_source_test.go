package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestValueSource: an error about a value names the file and line, or the environment variable, that
// sets the value. Values of the command line have neither.
func TestValueSource(t *testing.T) {
	data, file := small(t), filepath.Join(t.TempDir(), "c.toml")
	t.Setenv("SIAFU_HIDDEN", "0")
	for _, c := range []struct {
		text string
		args []string
		code int
		says string
	}{
		{"hidden = 4\n# a comment\nlr = -1\n", nil, 78, file + ": line 3: --lr=-1; it must be above 0"},
		{"hidden = 4\nmodel = \"poem\"\n", nil, 78, file + ": line 2: --model must be one of"},
		{"hidden = 4\nmemory = \"3 potatoes\"\n", nil, 78, file + ": line 2: --memory="},
		{"hidden = 4\nlr = -1\n", []string{"--lr=-2"}, 64, "siafu: train: --lr=-2"},
		{"lr = 0.5\n", nil, 64, "environment variable SIAFU_HIDDEN: --hidden=0"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := siafu(append([]string{"train", file, data}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%q %q: exit %d with %q, want %d with %q", c.text, c.args, r.code, r.err, c.code, c.says)
		}
	}
}

// TestBytesOfPaths: a path that is not UTF-8 is refused, since its bytes would be replaced on the way.
func TestBytesOfPaths(t *testing.T) {
	for _, args := range [][]string{{"info", "g\xff"}, {"train", "g", "--out", "r\xfe"}} {
		if r := siafu(args...); r.code != 64 || !strings.Contains(r.err, "is not UTF-8; rename the file") {
			t.Errorf("%q: exit %d with %q", args, r.code, r.err)
		}
	}
}
