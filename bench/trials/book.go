package trials

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/ranks/report/chart"
)

// Part is a table or figure.
type Part struct {
	Name, Title string
	Paper       string       // the paper's result
	Why         string       // ours differs
	Columns     []string     // of the table, of package table; nil: Write names them
	Write       func(*Sheet) // a table
	Extra       bool         // made only if it is named
}

// Sheet is a part in progress: its trainings, its table, the lines and the notes below it, and its figures.
// After an error it runs no training, and discards what is written to it.
type Sheet struct {
	*Archive
	ctx     context.Context
	table   *table.Table
	lines   bytes.Buffer
	notes   []string
	keys    []string // of the book
	first   int      // group of the book's first line
	figures []chart.Figure
	err     error // the first one
}

// Fail records an error of the part, if it is the first one.
func (s *Sheet) Fail(err error) { s.err = cmp.Or(s.err, err) }

// Try returns the result of a trial that another runner runs. If its fault has one of the kinds, Try returns
// the fault, also for later trials with the same key, without running them.
func (s *Sheet) Try(key string, t Trial, by Runner, kinds ...fault.Kind) (*Result, error) {
	if s.err != nil {
		return nil, nil
	}
	if refusal := s.refusals[key]; refusal != nil {
		return nil, refusal
	}
	r, err := s.GetFrom(s.ctx, t, by)
	if err != nil && slices.Contains(kinds, fault.KindOf(err)) {
		s.refusals[key] = err
		return nil, err
	}
	s.Fail(err)
	return r, nil
}

// Note adds a line below the others, if it is not there yet.
func (s *Sheet) Note(line string) {
	if !slices.Contains(s.notes, line) {
		s.notes = append(s.notes, line)
	}
}

// Write adds lines below the table.
func (s *Sheet) Write(text []byte) (int, error) {
	if s.err != nil {
		return len(text), nil
	}
	return s.lines.Write(text)
}

// Columns begins the table. A column is a name, or a name and a format as in package table.
func (s *Sheet) Columns(names ...string) { s.table = table.Left(names...) }

// Add adds a row to the table. A cell is text or a number, and a slice is several cells.
func (s *Sheet) Add(cells ...any) {
	if s.err == nil {
		s.table.Add(numbers(cells)...)
	}
}

// Columns returns the name of a column for each value.
func Columns[T any](format string, values []T) (names []string) {
	for _, v := range values {
		names = append(names, fmt.Sprintf(format, v))
	}
	return names
}

// Points writes the points of all curves to a CSV file, and names the file.
func (s *Sheet) Points(path, csv string) {
	fmt.Fprintf(s, "all points: %s\n", path)
	if s.err == nil {
		s.Fail(durable.WriteFile(s.op, path, []byte(csv), durable.Perm))
	}
}

// Choose returns the parts with these names, in their order; without names all but extra ones.
func Choose(op string, all []Part, names []string) (list []Part, err error) {
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(p Part) bool { return p.Extra }), nil
	}
	var known []string
	for _, p := range all {
		known = append(known, p.Name)
	}
	for _, n := range names {
		if k := slices.Index(known, n); k >= 0 {
			list = append(list, all[k])
		}
	}
	return list, CheckNames(op, "only", names, known)
}

// CheckNames returns a fault if a flag has an unknown name.
func CheckNames(op, flag string, names, known []string) error {
	for _, n := range names {
		if !slices.Contains(known, n) {
			return fault.New(fault.Usage, op, "", "--%s has %q", flag, n).Then("choose from %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// Draw adds a figure, whose groups are those of the book. A line with the name of a key has its group. A
// chart without lines and bars is none.
func (s *Sheet) Draw(c *chart.Chart) {
	if s.err != nil || len(c.Lines)+len(c.Bars) == 0 {
		return
	}
	shifted := *c
	shifted.Lines, shifted.Bars = slices.Clone(c.Lines), slices.Clone(c.Bars)
	for k := range shifted.Lines {
		l := &shifted.Lines[k]
		if key := slices.Index(s.keys, l.Name); key >= 0 {
			l.Group = key
		}
		l.Group += s.first
	}
	for k := range shifted.Bars {
		shifted.Bars[k].Group += s.first
	}
	s.figures = append(s.figures, chart.Figure{Title: c.Title, Draw: shifted.Draw})
}

// Line returns the line of a chart through points. deviation is that of y; nil: none.
func Line(name string, x, y, deviation []float64) chart.Line {
	l := chart.Line{Name: name}
	for k := range x {
		p := chart.Point{X: x[k], Y: y[k]}
		if deviation != nil {
			p.Deviation = deviation[k]
		}
		l.Points = append(l.Points, p)
	}
	return l
}

// Book is a paper's tables and figures.
type Book struct {
	Name, Title string
	Keys        []string // names of the lines of its figures, by group
	Parts       []Part
	GoOn        bool // continue after a part that this machine or build cannot make
	*Archive
	html string // path of its page; "": none
}

// Select selects the named parts of the book, and checks the path of its page.
func (b *Book) Select(op string, names []string, html string) (err error) {
	if html != "" {
		if err := chart.CheckPage(op, html); err != nil {
			return err
		}
	}
	b.html = html
	b.Parts, err = Choose(op, b.Parts, names)
	return err
}

// Run makes the book with trainings on a new site, and writes each part when it is finished.
func (b *Book) Run(ctx context.Context, w io.Writer) error { return Run(ctx, w, b.op, b.html, b) }

// Run prints the machine, and books with trainings on a new site. op names the operation in
// faults, html the page, "" for none.
func Run(ctx context.Context, w io.Writer, op, html string, books ...*Book) error {
	origin := Origin("in columns named paper")
	fmt.Fprint(w, origin)
	return OnSite(ctx, op, func(ctx context.Context, site *Site) error {
		site.Machine, _, _ = strings.Cut(strings.TrimPrefix(origin, "machine: "), "\n")
		for _, b := range books {
			b.Runner, b.Progress = site, os.Stderr
		}
		return Print(ctx, w, op, origin, html, books...)
	})
}

// Origin describes the origin of a page's numbers: this machine and command line, and where the
// paper's numbers are.
func Origin(paper string) string {
	var text strings.Builder
	Machine(&text)
	fmt.Fprintf(&text,
		"numbers of the paper: %s, and in lines that begin with \"paper:\"; this command made all others on this machine\n", paper)
	text.WriteString("a dash: does not apply, not printed in the paper, or explained below the table\n")
	return text.String()
}

// Print writes each part when it is finished, and the finished parts also as a page, which
// names their origin: machine, commit and command line.
func Print(ctx context.Context, w io.Writer, op, origin, html string, books ...*Book) error {
	var titles []string
	var keys []chart.Key
	for _, b := range books {
		titles = append(titles, b.Title)
		for _, name := range b.Keys {
			keys = append(keys, chart.Key{Group: len(keys), Name: name})
		}
	}
	p := &chart.Page{Title: strings.Join(titles, "; "), Lead: origin, Keys: keys}
	var err error
	first := 0
	for _, b := range books {
		before := len(p.Parts)
		err = b.print(ctx, w, p, first)
		first += len(b.Keys)
		for k := range p.Parts[before:] {
			if len(books) > 1 {
				p.Parts[before+k].Title = b.Name + ", " + p.Parts[before+k].Title
			}
		}
		if err != nil {
			break
		}
	}
	if html != "" {
		err = cmp.Or(err, p.Save(op, html))
	}
	return err
}

func (b *Book) print(ctx context.Context, w io.Writer, to *chart.Page, first int) error {
	for _, p := range b.Parts {
		fmt.Fprintf(w, "\n## %s, %s: %s\n", b.Name, p.Name, p.Title)
		var said []string
		if p.Paper != "" {
			said = append(said, "paper: "+p.Paper)
		}
		if p.Why != "" {
			said = append(said, "ours: "+p.Why)
		}
		for _, line := range said {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
		s := &Sheet{Archive: b.Archive, ctx: ctx, first: first, keys: b.Keys}
		if p.Columns != nil {
			s.Columns(p.Columns...)
		}
		b.used = nil
		p.Write(s)
		for _, note := range s.notes {
			fmt.Fprintln(s, note)
		}
		err := s.err
		s.err = nil
		if kind := fault.KindOf(err); b.GoOn && err != nil && (kind == fault.Missing || kind == fault.Config) {
			fmt.Fprintf(s, "not run: %v\n", err)
			err = nil
		}
		if from := b.from(); from != "" {
			fmt.Fprintln(s, from)
		}
		if s.table != nil {
			err = cmp.Or(err, s.table.Text(w))
		}
		w.Write(s.lines.Bytes())
		to.Parts = append(to.Parts, chart.Part{Title: p.Name + ": " + p.Title, Text: strings.Join(said, "\n"), Figures: s.figures,
			Table: s.table, Lines: strings.FieldsFunc(s.lines.String(), func(r rune) bool { return r == '\n' })})
		if err != nil {
			return err
		}
	}
	if len(b.left) > 0 {
		line := fmt.Sprintf("%d trainings were not finished within %g hours; numbers that depend on them are missing. Run the same "+
			"command again to continue; if the first training alone takes longer, set more --hours.", len(b.left), b.hours)
		fmt.Fprintf(w, "\n%s\n", line)
		to.Parts = append(to.Parts, chart.Part{Title: "Not done", Text: line})
	}
	return nil
}

// from describes the trainings of a part: their number, load averages, versions and machines.
func (b *Book) from() string {
	if len(b.used) == 0 {
		return ""
	}
	var loads []float64
	var versions, machines []string
	for _, r := range b.used {
		now, _, _ := strings.Cut(r.Load, " ")
		if x, err := strconv.ParseFloat(now, 64); err == nil {
			loads = append(loads, x)
		}
		versions, machines = append(versions, r.Version), append(machines, r.Machine)
	}
	text := fmt.Sprintf("from %d trainings", len(b.used))
	if len(loads) > 0 {
		text += fmt.Sprintf("; load before them %g to %g", slices.Min(loads), slices.Max(loads))
	}
	return text + "; siafu " + different(versions) + "; " + different(machines)
}

// different returns the distinct texts, without empty ones.
func different(list []string) string {
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
	return strings.Join(list, ", ")
}
