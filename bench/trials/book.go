package trials

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"siafu/internal/fault"
	"siafu/ranks/report/chart"
	"siafu/ranks/report/page"
)

// Part is a table or figure.
type Part struct {
	Name, Title string
	Paper       string                              // the paper's result
	Why         string                              // ours differs
	Write       func(context.Context, *Sheet) error // a table
	Extra       bool                                // made only if it is named
}

// Sheet takes a part's table, cells that end with tabs, and its figures.
type Sheet struct {
	io.Writer
	Figures []page.Figure
}

// Head writes a line of column names.
func (s *Sheet) Head(columns ...string) { s.Row(columns...) }

// Row writes a line of cells.
func (s *Sheet) Row(cells ...string) { fmt.Fprintln(s, strings.Join(cells, "\t")+"\t") }

// Choose returns the parts with these names, in their order; without names all but extra ones.
func Choose(op string, all []Part, names []string) (list []Part, err error) {
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(p Part) bool { return p.Extra }), nil
	}
	for _, n := range names {
		k := slices.IndexFunc(all, func(p Part) bool { return p.Name == n })
		if k < 0 {
			var known []string
			for _, p := range all {
				known = append(known, p.Name)
			}
			return nil, fault.New(fault.Usage, op, "", "--only has %q", n).Then("choose from %s", strings.Join(known, ", "))
		}
		list = append(list, all[k])
	}
	return list, nil
}

// Draw adds a figure.
func (s *Sheet) Draw(c *chart.Chart) {
	s.Figures = append(s.Figures, page.Figure{Title: c.Title, Draw: c.Draw})
}

// Book is a paper's tables and figures.
type Book struct {
	Name, Title string
	Keys        []page.Key // of the lines of its figures
	Parts       []Part
	GoOn        bool // continue after a part that this machine or build cannot make
	*Archive
}

// Run prints the machine, and books with trainings on a new site. op names the operation in
// faults, html the page, "" for none.
func Run(ctx context.Context, w io.Writer, op, html string, books ...*Book) error {
	var text strings.Builder
	Machine(&text)
	origin := text.String()
	fmt.Fprint(w, origin)
	ctx, stop := UntilInterrupted(ctx)
	defer stop()
	site, err := Open(op)
	if err != nil {
		return err
	}
	site.Machine, _, _ = strings.Cut(strings.TrimPrefix(origin, "machine: "), "\n")
	for _, b := range books {
		b.Runner = site
	}
	return cmp.Or(Print(ctx, w, op, origin, html, books...), site.Close())
}

// Print writes each part when it is finished, and the finished parts also as a page, which
// names their origin: machine, commit and command line.
func Print(ctx context.Context, w io.Writer, op, origin, html string, books ...*Book) error {
	var titles []string
	var keys []page.Key
	for _, b := range books {
		titles, keys = append(titles, b.Title), append(keys, b.Keys...)
	}
	p := &page.Page{Title: strings.Join(titles, "; "), Lead: origin, Keys: keys}
	var err error
	for _, b := range books {
		before := len(p.Parts)
		err = b.print(ctx, w, p)
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

func (b *Book) print(ctx context.Context, w io.Writer, to *page.Page) error {
	for _, p := range b.Parts {
		fmt.Fprintf(w, "\n## %s, %s: %s\n", b.Name, p.Name, p.Title)
		said := p.said()
		for _, line := range said {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		var cells bytes.Buffer
		s := &Sheet{Writer: io.MultiWriter(t, &cells)}
		b.used = nil
		err := p.Write(ctx, s)
		if kind := fault.KindOf(err); b.GoOn && err != nil && (kind == fault.Missing || kind == fault.Config) {
			fmt.Fprintf(s, "not run: %v\n", err)
			err = nil
		}
		if from := b.from(); from != "" {
			fmt.Fprintln(s, from)
		}
		t.Flush()
		on := page.Part{Title: p.Name + ": " + p.Title, Text: strings.Join(said, "\n"), Figures: s.Figures}
		on.Table, on.Lines = page.ReadTable(cells.String())
		to.Parts = append(to.Parts, on)
		if err != nil {
			return err
		}
	}
	if len(b.left) > 0 {
		line := fmt.Sprintf("%d trainings were not started within %g hours; numbers that depend on them are missing. Run the same command again to continue.", len(b.left), b.hours)
		fmt.Fprintf(w, "\n%s\n", line)
		to.Parts = append(to.Parts, page.Part{Title: "Not done", Text: line})
	}
	return nil
}

// said returns the paper's result, and why ours differs.
func (p Part) said() (lines []string) {
	if p.Paper != "" {
		lines = append(lines, "paper: "+p.Paper)
	}
	if p.Why != "" {
		lines = append(lines, "ours: "+p.Why)
	}
	return lines
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
