package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bash completes commands, their commands and flags, and nothing else. For zsh and fish
// only their texts are looked at: all commands and flags are in them.
func TestCompletion(t *testing.T) {
	script := must(t, "completion", "bash")
	for line, want := range map[string]string{
		"siafu tra":                       "train",
		"siafu bench ep":                  "epoch",
		"siafu bench epoch --hid":         "--hidden",
		"siafu train data --refr":         "--refresh",
		"siafu info --refr":               "",
		"siafu train data --recipe gat-c": "gat-cora gat-citeseer gat-coauthor-cs",
		"siafu plan data --precision m":   "mixed",
		"siafu shi":                       "",
	} {
		shell := []string{"-c", script + `COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _siafu; echo "${COMPREPLY[@]}"`, "bash"}
		out, err := exec.Command("bash", append(shell, strings.Fields(line)...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	for shell, flag := range map[string]string{"zsh": "'--weight-decay:", "fish": "-l weight-decay -d '"} {
		if text := must(t, "completion", shell); !strings.Contains(text, flag) || !strings.Contains(text, "bench epoch") {
			t.Errorf("%s:\n%.300s", shell, text)
		}
	}
	if r := siafu("completion", "csh"); r.code != 64 {
		t.Errorf("exit %d %s", r.code, r.err)
	}
}

// The manual page has each command and flag, and troff finds nothing wrong with it.
func TestMan(t *testing.T) {
	text := must(t, "man")
	for _, want := range []string{".SS train <data>", `.B \-\-weight\-decay=`, ".SS bench epoch"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff on this machine")
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-wmac", "-wescape", "-wmissing", "-wdelim", "-z")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// help finds flags, too.
func TestHelpOfFlags(t *testing.T) {
	for _, name := range []string{"codec", "--codec"} {
		if out := must(t, "help", name); !strings.Contains(out, "siafu train --codec=") || !strings.Contains(out, "siafu plan --codec=") {
			t.Errorf("help %s:\n%s", name, out)
		}
	}
	if r := siafu("help", "hiden"); r.code != 64 || !strings.Contains(r.err, `"hiden"`) {
		t.Errorf("exit %d %s", r.code, r.err)
	}
}

// If the reader closes the pipe, as in "siafu report | head", siafu ends silently.
func TestNobodyReads(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	must(t, "train", small(t), "--epochs", "1", "--out", run, "--quiet")
	for _, args := range [][]string{{"report", run}, {"help", "train"}, {"man"}} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		cmd := process(nil, args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = writer, &said
		_ = cmd.Run() // the exit code is that of a closed pipe
		writer.Close()
		if said.Len() > 0 {
			t.Errorf("%s: %s", args[0], &said)
		}
	}
}
