package chart

import (
	"image/color"
	"math"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// raster is a surface of pixels.
//
// Design note: gonum/plot was tried. Its layout differs from that of the page. Its packages read
// twelve fonts when a process starts, which costs every rank of a run 5 MB (its canvas alone:
// 2 MB). gonum/plot uses gg to rasterise.
type raster struct {
	*gg.Context
	faces map[float64]font.Face
}

// density is the number of pixels per unit, high enough for print.
const density = 3

func newRaster(width, height float64) (*raster, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	r := &raster{gg.NewContext(int(math.Ceil(width*density)), int(math.Ceil(height*density))), map[float64]font.Face{}}
	for _, size := range sizes {
		if r.faces[size], err = opentype.NewFace(f, &opentype.FaceOptions{Size: size * density, DPI: 72}); err != nil {
			return nil, err
		}
	}
	r.SetColor(color.White)
	r.Clear()
	return r, nil
}

// sizes are the sizes of texts in units.
var sizes = map[role]float64{tick: 10.5, name: 11.5, label: 11.5, title: 13}

// pen returns the colour and the line width of a role.
func pen(ro role, group int) (color.NRGBA, float64) {
	switch ro {
	case line:
		return palette[group%len(palette)].light, 1.6
	case band:
		c := palette[group%len(palette)].light
		c.A = 46
		return c, 0
	case bar:
		return palette[group%len(palette)].light, 0
	case whisker:
		return ink[0].light, 1.4
	case grid:
		return ink[2].light, 0.7
	case axis, tick, name:
		return ink[1].light, 1
	}
	return ink[0].light, 1
}

func (r *raster) mark(ro role, group int, _ string, places ...xy) {
	colour, width := pen(ro, group)
	r.SetColor(colour)
	r.SetLineWidth(width * density)
	r.SetDash()
	if ro == line {
		var dash []float64
		for _, d := range dashesOf(group) {
			dash = append(dash, d*density)
		}
		r.SetDash(dash...)
	}
	for _, p := range places {
		r.LineTo(p.x*density, p.y*density)
	}
	if ro.isArea() {
		r.ClosePath()
		r.Fill()
		return
	}
	r.Stroke()
}

func (r *raster) text(ro role, _ int, at xy, a anchor, turned bool, s string) {
	colour, _ := pen(ro, none)
	r.SetColor(colour)
	r.SetFontFace(r.faces[sizes[ro]])
	r.Push()
	defer r.Pop()
	x, y := at.x*density, at.y*density
	if turned {
		r.RotateAbout(-math.Pi/2, x, y)
	}
	r.DrawStringAnchored(printable(s), x, y, map[anchor]float64{middle: 0.5, end: 1}[a], 0)
}
