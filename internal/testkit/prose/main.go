// Prose checks the language of documents and Go comments. It reports listed words that have a
// better replacement, sentences of more than 35 words and repeated lines.
//
//	prose PATH...
//
// A PATH is a Markdown file, a Go file or a folder with such files. Each finding is a line
// FILE:LINE: TEXT. The exit code is 1 if there are findings.
package main

import (
	"bufio"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// longest is the number of words that a sentence may have.
const longest = 35

// better maps expressions to their replacements.
var better = []struct {
	bad  *regexp.Regexp
	good string
}{
	{word(`fore(tell|tells|told|telling)`), "predict or estimate"},
	{word(`look-alikes?`), "synthetic graph"},
	{word(`luggage`), "portable state"},
	{word(`anew`), "again"},
	{word(`over again`), "again"},
	{word(`way (forward|back)`), "forward pass, backward pass"},
	{word(`in turns with`), "interleaved with"},
	{word(`not to be had`), "unavailable"},
	{word(`mend (it|them|the)`), "the remedy as an imperative"},
	{word(`what helps`), "the remedy as an imperative"},
	{word(`at (its|their) own pace`), "asynchronous"},
	{word(`so many (epochs|rows|ranks|bytes|vertices)`), "N"},
	{word(`the house`), "the architecture"},
}

func word(expression string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + expression + `\b`) }

func main() {
	found := 0
	report := func(path string, line int, text string) {
		found++
		fmt.Printf("%s:%d: %s\n", path, line, text)
	}
	for _, root := range os.Args[1:] {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if err == nil && d.Name() == "testdata" {
					return filepath.SkipDir
				}
				return err
			}
			return checkFile(path, func(line int, text string) { report(path, line, text) })
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(2)
		}
	}
	if found > 0 {
		os.Exit(1)
	}
}

// checkFile checks a file by its kind; files of other kinds pass.
func checkFile(path string, report func(line int, text string)) error {
	switch filepath.Ext(path) {
	case ".md":
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		checkMarkdown(bufio.NewScanner(f), report)
	case ".go":
		return checkComments(path, report)
	}
	return nil
}

// checkComments checks the comments of a Go file, except the output of examples.
func checkComments(path string, report func(line int, text string)) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		if strings.HasPrefix(group.Text(), "Output:") {
			continue
		}
		line := files.Position(group.Pos()).Line
		checkMarkdown(bufio.NewScanner(strings.NewReader(group.Text())), func(n int, text string) { report(line+n-1, text) })
	}
	return nil
}

// paragraph is text to check and its first line number.
type paragraph struct {
	text string
	line int
}

// checkMarkdown checks paragraphs, list items and table cells. It skips code.
func checkMarkdown(lines *bufio.Scanner, report func(line int, text string)) {
	lines.Buffer(nil, 1<<20)
	var p paragraph
	end := func() {
		check(p, report)
		p = paragraph{}
	}
	fenced, last := false, ""
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			fenced = !fenced
			end()
		case fenced || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") && p.text == "":
			end()
		case text == "" || strings.HasPrefix(text, "#"):
			end()
		case strings.HasPrefix(text, "|"):
			end()
			for _, cell := range strings.Split(text, "|") {
				check(paragraph{cell, n}, report)
			}
		default:
			if text == last {
				report(n, "repeated line: "+text)
			}
			if item.MatchString(text) {
				end()
			}
			if p.text == "" {
				p.line = n
			}
			p.text += " " + text
		}
		last = text
	}
	end()
}

var (
	item     = regexp.MustCompile(`^([-*]|\d+\.) `)
	code     = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\]\([^)]*\)`)
	sentence = regexp.MustCompile(`[.!?:;]["')]*(\s|$)`)
)

// check reports bad words and long sentences of a paragraph.
func check(p paragraph, report func(line int, text string)) {
	text := link.ReplaceAllString(code.ReplaceAllString(p.text, "X"), "]")
	for _, b := range better {
		if found := b.bad.FindString(text); found != "" {
			report(p.line, fmt.Sprintf("%q: write %s", found, b.good))
		}
	}
	for _, s := range sentence.Split(text, -1) {
		if words := strings.Fields(s); len(words) > longest {
			report(p.line, fmt.Sprintf("a sentence of %d words: %s …", len(words), strings.Join(words[:8], " ")))
		}
	}
}
