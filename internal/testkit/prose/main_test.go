package main

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCheckMarkdown(t *testing.T) {
	long := strings.Repeat("word ", longest) + "end."
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"good":            {"# Title\n\nA rank sends rows. It waits.\n", nil},
		"a bad word":      {"One.\n\nRows are sent\nanew.\n", []string{`3: "anew": write again`}},
		"code":            {"`anew` is code.\n\n```\nanew\n```\n\n    anew\n", nil},
		"a long one":      {long, []string{"1: a sentence of 36 words: word word word word word word word word …"}},
		"two, each short": {strings.TrimSuffix(long, " end.") + ". End.", nil},
		"twice":           {"A line.\nA line.\n", []string{"2: repeated line: A line."}},
		"a table": {"| a | anew |\n|---|---|\n| " + strings.TrimSuffix(long, " end.") + " | b |\n",
			[]string{`1: "anew": write again`}},
		"items": {"- " + strings.Repeat("word ", 20) + "\n- " + strings.Repeat("other ", 20) + "\n", nil},
	} {
		var got []string
		checkMarkdown(bufio.NewScanner(strings.NewReader(c.text)), func(line int, text string) {
			got = append(got, fmt.Sprintf("%d: %s", line, text))
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
