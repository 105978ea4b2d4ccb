package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
)

// The marker file of a folder of plots, and the kind in it.
const (
	plotsMark = "plots.json"
	plotsKind = "plots"
)

var plotsContents = inventory.Folder{{Name: inventory.Pattern(`plots\.json|[A-Za-z0-9-]+\.(png|svg|csv|md)`)}}

// plots returns the writers of the files in a folder of plots, by name.
func (t *comparison) plots(runs []*Run) map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{
		"report.md": t.table(plusMinus).Markdown, "report.csv": t.csv,
		plotsMark: func(w io.Writer) error {
			_, err := w.Write(inventory.NewMarker(plotsKind).Encode())
			return err
		},
	}
	curves, bars := t.figures()
	for _, c := range slices.Concat(curves, bars) {
		files[c.Name+".png"], files[c.Name+".svg"] = c.WritePNG, c.WriteSVG
	}
	for i, f := range timelines(runs) {
		files[fmt.Sprintf("timeline-%d.svg", i+1)] = f.Draw
	}
	return files
}

// savePlots writes the files to the folder dir. It replaces an older folder of plots, but no
// other folder.
func savePlots(dir string, files map[string]func(io.Writer) error) error {
	if err := checkPlots(dir); err != nil {
		return err
	}
	tmp, err := durable.NewFolder(op, filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer tmp.Close()
	for name, write := range files {
		if err := durable.Write(op, filepath.Join(tmp.Path, name), write); err != nil {
			return err
		}
	}
	return tmp.Commit()
}

// checkPlots returns a fault if dir exists and is neither empty nor a folder of plots.
func checkPlots(dir string) error {
	foreign, err := plotsContents.Foreign(dir)
	if err != nil {
		return fault.System(op, dir, err)
	}
	inside, _ := filepath.Glob(filepath.Join(dir, "*"))
	if foreign == "" && len(inside) > 0 && inventory.ReadMarker(filepath.Join(dir, plotsMark), plotsKind) == nil {
		foreign = inside[0]
	}
	if foreign != "" {
		return inventory.Refusal(op, foreign)
	}
	return nil
}
