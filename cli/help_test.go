package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"siafu/cli/commandline"
	"siafu/ranks/config"
)

// TestShortHelp: the commands fit one screen, train --help shows at most 25 flags in 80 columns,
// and --help-all shows all.
func TestShortHelp(t *testing.T) {
	t.Parallel()
	usual, whole := must(t, "train", "--help"), must(t, "train", commandline.HelpAll)
	for name, c := range map[string]struct {
		text  string
		lines int
	}{"siafu": {must(t, "help"), 41}, "train": {usual, 50}} {
		lines := strings.Split(strings.TrimSuffix(c.text, "\n"), "\n")
		if len(lines) > c.lines {
			t.Errorf("%s: %d lines, want at most %d", name, len(lines), c.lines)
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Errorf("%s: %d columns: %s", name, n, l)
			}
		}
	}
	flags := func(text string) (list []string) {
		for l := range strings.Lines(text) {
			if word := strings.Fields(l); len(word) > 0 && strings.HasPrefix(word[0], "--") {
				name, _, _ := strings.Cut(word[0], "=")
				list = append(list, name)
			}
		}
		return list
	}
	short, all := flags(usual), flags(whole)
	if len(short) == 0 || len(short) > 25 || len(all) < 70 || len(all) > 90 {
		t.Errorf("%d usual flags of %d", len(short), len(all))
	}
	for _, f := range short {
		if !slices.Contains(all, f) {
			t.Errorf("%s lacks %s", commandline.HelpAll, f)
		}
	}
	if must(t, "help", "train") != usual || !strings.Contains(usual, commandline.HelpAll) {
		t.Error("siafu help train differs from train --help, or does not name the rest")
	}
}

// TestTopics: train --help names the groups of its flags, and siafu help explains each flag
// of a group in 80 columns.
func TestTopics(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(must(t, "train", "--help"), "Topics: ")
	list, _, _ = strings.Cut(list, ".")
	topics := strings.Fields(list)
	if len(topics) < 6 {
		t.Errorf("topics are %q", topics)
	}
	explained := ""
	for _, topic := range topics {
		text := must(t, "help", topic)
		for l := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); n > 80 &&
				!strings.HasPrefix(l, "--") && len(strings.Fields(l)) > 1 {
				t.Errorf("%s: %d columns: %s", topic, n, l)
			}
		}
		explained += text + strings.Join(strings.Fields(text), " ")
	}
	for f := range new(config.Config).Options() {
		if name := f.Tag.Get("toml"); name != "" && name != "-" && !strings.Contains(explained, "\n--"+name) &&
			!strings.HasPrefix(explained, "--"+name) && !strings.Contains(explained, "Key: "+name+".") {
			t.Errorf("no topic explains --%s", name)
		}
	}
}
