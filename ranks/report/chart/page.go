package chart

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"siafu/internal/durable"
	"siafu/internal/inventory"
	"siafu/internal/table"
)

// Page is the content of an HTML page.
type Page struct {
	Title string
	Lead  string // a sentence below the title
	Keys  []Key
	Parts []Part
}

// Key is a legend entry of a group.
type Key struct {
	Group int
	Name  string
}

// Part is a section. Empty fields are omitted.
type Part struct {
	Title   string
	Text    string
	Figures []Figure
	Wide    []Figure     // each as wide as the page
	Table   *table.Table // a reader can sort it by clicking the head of a column
	Lines   []string     // verbatim
	Parts   []Part       // below the others, with smaller titles and without parts of their own
	Folded  bool         // initially collapsed
}

// Figure is a chart below its title.
type Figure struct {
	Title string
	Draw  func(io.Writer) error // writes an SVG element, its texts escaped
}

// SVG returns the figure as an SVG element.
func (f Figure) SVG() (template.HTML, error) {
	var b bytes.Buffer
	err := f.Draw(&b)
	return template.HTML(b.String()), err
}

var (
	//go:embed page.html
	frame string
	//go:embed page.css
	style string
	//go:embed page.js
	script string

	pageTemplate = template.Must(template.New("page").Parse(frame))
)

// mark identifies siafu's pages. It is in the head of every page.
const mark = `<meta name="generator" content="siafu">`

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	css := colourSheet(false) + "@media (prefers-color-scheme: dark) { " + colourSheet(true) + "}\n" + groupRules() + style
	sum := sha256.Sum256([]byte(script))
	return pageTemplate.Execute(w, struct {
		*Page
		Mark   template.HTML
		Style  template.CSS
		Script template.JS
		Hash   string
	}{p, mark, template.CSS(css), template.JS(script), base64.StdEncoding.EncodeToString(sum[:])})
}

// Save writes the page to a file, which may be an older page. op names the operation in
// a fault.
func (p *Page) Save(op, path string) error {
	if err := CheckPage(op, path); err != nil {
		return err
	}
	return durable.Write(op, path, p.Write)
}

// CheckPage returns a fault if path exists and is not a page that siafu has written.
func CheckPage(op, path string) error {
	return inventory.Overwrite(op, path, func(head []byte) bool { return bytes.Contains(head, []byte(mark)) })
}

// Swatch returns the legend line of k as SVG.
func (k Key) Swatch() (template.HTML, error) {
	return Figure{Draw: func(w io.Writer) error { return swatch(w, k.Group) }}.SVG()
}
