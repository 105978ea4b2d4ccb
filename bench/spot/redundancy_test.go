package spot

import (
	"bytes"
	"strings"
	"testing"

	"siafu/bench/trials"
	"siafu/ranks/schedule/pipeline"
)

// Overheads are medians of interleaved pairs, pauses medians of losses. The numbers of table 3.5 are beside them.
func TestRedundancyColumns(t *testing.T) {
	measured := func(r pipeline.Redundancy, resumed int, epochs []float64, updates ...float64) protected {
		x := protected{Redundancy: r, epochs: epochs, resumed: resumed}
		for _, s := range updates {
			x.pauses = append(x.pauses, pause{begin: s / 2, update: s})
		}
		return x
	}
	list := []protected{
		measured(pipeline.Off, 0, []float64{1, 2, 4}, 3, 8, 5),
		measured(pipeline.LazyForwardBackward, 3, []float64{1.1, 2.2, 4}, 4, 2, 1),
		measured(pipeline.EagerForward, 2, []float64{1.5, 2.4, 4.4}, 1, 1.5, 2),
		measured(pipeline.EagerForwardBackward, 3, []float64{1.5, 3.2, 8}, 1, 1, 1),
	}
	var out bytes.Buffer
	parts, err := trials.Choose(op, Options{}.parts(), []string{"pipelines"})
	if err != nil {
		t.Fatal(err)
	}
	parts[0].Write = func(s *trials.Sheet) { s.Fail(Options{}.compare(s, list)) }
	book := &trials.Book{Archive: &trials.Archive{}, Parts: parts}
	if err := trials.Print(t.Context(), &out, op, "", "", book); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"off 3 2.000 0 of 3 2.50 (1.50 to 4.00) 5.00 (3.00 to 8.00)",
		"lflb 3 2.200 10.0 (0.0 to 10.0) 7.01, 7.65 3 of 3 1.00 (0.50 to 2.00) 2.00 (1.00 to 4.00)",
		"eflb 3 2.400 20.0 (10.0 to 50.0) 19.77, 9.51 2 of 3 0.75 (0.50 to 1.00) 1.50 (1.00 to 2.00)",
		"efeb 3 3.200 60.0 (50.0 to 100.0) 71.51, 64.24 3 of 3 0.50",
		"less than with lflb: 25.0 % (~35 %)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
