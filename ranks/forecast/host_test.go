package forecast

import (
	"testing"

	"siafu/graph"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Every gather, with and without attention, the tensor work and the codec have a cost. A rank without
// vertices measures, too.
func TestHost(t *testing.T) {
	h := Host{Team: kernels.NewTeam(2), Features: graph.Features{Rows: 3, Dim: 8, Dense: make([]float32, 24)}, Labels: make([]int32, 3),
		Split: make([]uint8, 3), Memory: 1 << 20, Busy: true}
	defer h.Team.Close()
	for _, kind := range []string{"gcn", "gat"} {
		r := run(t, 2, 3, 0, "int8")
		r.Net.Kind, r.Net.Heads = kind, 1
		r.Net.Choose(model.Load{}, model.Choices{Order: "auto", CacheInput: "off"})
		f := New(r)
		for h.Rows = range 4 {
			h.Sample = &Sample{Graph: 4, Bytes: 1 << 10, CSR: graph.CSR{Offsets: []int64{0}}}
			for range h.Rows {
				h.Sample.Cols = append(h.Sample.Cols, 3, 1)
				h.Sample.Offsets = append(h.Sample.Offsets, int64(len(h.Sample.Cols)))
			}
			rates, coded := h.Rates(f), h.Codec(r.Codecs[0], f)
			if !(rates.Row > 0 && rates.Edge[0] > 0 && rates.Edge[1] > 0 && rates.Backward[1] > 0 && coded.Encode > 0) || h.Need(f) <= 0 {
				t.Errorf("%s, %d rows: %+v, %+v, memory %d", kind, h.Rows, rates, coded, h.Need(f))
			}
			if kind == "gcn" && rates.Edge[1] != rates.Backward[1] {
				t.Errorf("sums have other costs backward: %+v", rates)
			}
		}
	}
	rows := model.Gathering{Width: 5 * 9, Columns: 8, Heads: 1} // of rgat with four relations
	if there, back := h.attention(rows, model.Spec{AttentionDropout: 0.5}); !(there > 0 && back > 0) {
		t.Errorf("rows of relations take %g and %g s", there, back)
	}
}
