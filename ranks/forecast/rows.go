package forecast

import (
	"siafu/graph/partition"
	"siafu/graph/size"
	"siafu/halo/codec"
	"siafu/ranks/config"
)

// exchange is the memory of rows that come from other ranks and go to them.
func (f *Forecast) exchange(m *Memory, p partition.RankReport) {
	if f.Async {
		f.published(m, p)
		return
	}
	rows := []int64{floats(p.Ghosts, f.maxWidth())}
	for _, g := range f.foot.Gathers {
		if g.Heads > 0 {
			rows = append(rows, floats(p.Ghosts, int64(g.Width)))
		}
	}
	if f.Graph < 2 {
		return
	}
	m.add(ghosts, Array, rows...)
	var plain, ids, encoded int64
	for _, c := range append(f.Others, f.Codec) {
		if !framed(c) {
			plain = floats(p.SendRows, f.maxWidth())
			continue
		}
		// What leaves, and what has arrived and is not decoded.
		out, _, _ := payload(c, max(p.SendRows, p.Ghosts), f.maxWidth())
		encoded, ids = max(encoded, size.Product(2, out)), max(ids, count(!c.Lossless(), 4*p.SendRows))
	}
	m.add(buffers, Array, plain, ids)
	f.outlive(m, p)
	m.add("lost in codecs, fed back", Array, f.lost(p)...)
	m.add("encoded rows", Heap, encoded)
}

// outlive is the memory of transfers that outlive their epoch: two for the rows
// of a layer in each direction.
func (f *Forecast) outlive(m *Memory, p partition.RankReport) {
	if f.Refresh != config.Previous {
		return
	}
	var rows, packed []int64
	encoded := int64(0)
	for _, e := range f.Exchanges() {
		width := int64(e.Width)
		rows = append(rows, repeat(2, floats(p.Ghosts, width))...)
		if !framed(f.Codec) {
			packed = append(packed, repeat(2, floats(p.SendRows, width))...)
			continue
		}
		out, _, _ := payload(f.Codec, max(p.SendRows, p.Ghosts), width)
		encoded = size.Sum(encoded, size.Product(4, out))
		packed = append(packed, repeat(2, count(!f.Codec.Lossless(), 4*p.SendRows))...)
	}
	m.add("ghost rows of two epochs", Array, rows...)
	m.add("exchange buffers of two epochs", Array, packed...)
	m.add("encoded rows of two epochs", Heap, encoded)
}

// lost is what a codec that feeds errors back keeps of every exchange's rows.
func (f *Forecast) lost(p partition.RankReport) (made []int64) {
	if _, fed := f.Codec.(codec.Corrected); !fed {
		return nil
	}
	for _, e := range f.Exchanges() {
		rows := p.SendRows
		if e.Backward {
			rows = p.Ghosts
		}
		made = append(made, floats(rows, int64(e.Width)))
	}
	return made
}

// published is what a rank keeps in bounded asynchrony: the newest rows and
// gradients of every layer, its own and those of others.
func (f *Forecast) published(m *Memory, p partition.RankReport) {
	var own, far []int64
	back, messages := []int64{4 * p.SendRows}, int64(0) // the ids of rows that go out
	for _, g := range f.foot.Gathers {
		if g.Width == 0 {
			continue
		}
		width, gathered := int64(g.Width), int64(g.Width)
		if g.Heads > 0 {
			gathered = int64(g.Columns)
		}
		own = append(own, floats(p.Vertices, width), floats(p.Vertices, gathered))
		far = append(far, floats(p.Ghosts, width))
		if g.Backward {
			far, back = append(far, floats(p.Ghosts, width)), append(back, floats(p.SendRows, width))
		}
		messages = size.Sum(messages, floats(p.Ghosts+p.SendRows, width))
	}
	m.add("published rows", Array, own...)
	m.add(ghosts, Array, far...)
	m.add(buffers, Array, back...)
	// On their way and arrived, twice over: the collector lets the heap double.
	m.add("rows in messages", Heap, size.Product(4, messages))
}
