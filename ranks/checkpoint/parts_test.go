package checkpoint

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"siafu/internal/fault"
)

func TestInterval(t *testing.T) {
	hourAgo := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		text  string
		want  Interval
		due   []int // of epochs 1 to 6, an hour after the last one
		wrong bool
	}{
		{"2e", Interval{Epochs: 2}, []int{2, 4, 6}, false},
		{"1e", Interval{Epochs: 1}, []int{1, 2, 3, 4, 5, 6}, false},
		{"10m", Interval{Time: 10 * time.Minute}, []int{1, 2, 3, 4, 5, 6}, false},
		{"2h", Interval{Time: 2 * time.Hour}, nil, false},
		{"90s", Interval{Time: 90 * time.Second}, []int{1, 2, 3, 4, 5, 6}, false},
		{"0", Interval{}, nil, false},
		{"off", Interval{}, nil, false},
		{text: "", wrong: true}, {text: "20", wrong: true}, {text: "e", wrong: true}, {text: "0e", wrong: true},
		{text: "-1e", wrong: true}, {text: "-5m", wrong: true}, {text: "1.5e", wrong: true}, {text: "often", wrong: true},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := ParseInterval(tc.text)
			if tc.wrong {
				wantFault(t, err, fault.Usage, "--checkpoint-every", "20e")
				return
			}
			if err != nil || got != tc.want {
				t.Fatalf("%+v, %v", got, err)
			}
			if again, err := ParseInterval(got.String()); err != nil || again != got {
				t.Errorf("%q reads %v, %v", got, again, err)
			}
			for epoch, i := 1, 0; epoch <= 6; epoch++ {
				want := i < len(tc.due) && tc.due[i] == epoch
				if want {
					i++
				}
				if got.Due(epoch, hourAgo) != want {
					t.Errorf("epoch %d is due: %t", epoch, !want)
				}
			}
		})
	}
}

// A run resumes only with the dataset and settings of the checkpoint. The error names each
// difference.
func TestAgree(t *testing.T) {
	saved := State{
		Path: "run", Data: Settings{"features": "40 dense", "labels.bin": "9 bytes"},
		Settings: Settings{"lr": "0.01", "hidden": "16", "model": "gcn"},
	}
	if err := saved.Agree(maps.Clone(saved.Data), maps.Clone(saved.Settings)); err != nil {
		t.Error(err)
	}
	// Only both together can say that first weights were others.
	with := func(initializer string) Settings {
		s := maps.Clone(saved.Settings)
		s["initializer"] = initializer
		return s
	}
	if !saved.Settings.Equal(with("he")) || !with("he").Equal(saved.Settings) || !with("he").Equal(with("he")) ||
		with("he").Equal(with("xavier")) {
		t.Error("an initializer is compared where one is lacking, or is not where there are two")
	}
	err := saved.Agree(saved.Data, Settings{"lr": "0.02", "hidden": "16", "heads": "8"})
	wantFault(t, err, fault.Config, "resume: run: ",
		`heads is not set in the checkpoint and "8" now, lr is "0.01" in the checkpoint and "0.02" now, model is "gcn" in `+
			`the checkpoint and not set now`)
	err = saved.Agree(Settings{"features": "60 dense", "labels.bin": "9 bytes"}, saved.Settings)
	wantFault(t, err, fault.Config, "dataset differs from",
		`the training: features is "40 dense" in the checkpoint and "60 dense" now; resume`)
	saved.Data = nil
	wantFault(t, saved.Agree(Settings{}, saved.Settings), fault.Config, "older version", "--init run/model.safetensors")
}

// A checkpoint fits the network that has its tensors, of its shapes and in its
// order, and the optimiser that has its slots.
func TestFits(t *testing.T) {
	s := stateOf(1, 4)
	slots := []string{"exp_avg", "exp_avg_sq"}
	if err := s.Fits(weightsOf(2, 4, 1), slots); err != nil {
		t.Error(err)
	}
	wantFault(t, s.Fits(weightsOf(1, 5, 1), slots), fault.Data, modelFile, "layers.0.weight [3 4]", "layers.0.weight [3 5]")
	wantFault(t, s.Fits(weightsOf(1, 4, 1)[:2], slots), fault.Data, modelFile, "layers.1.weight [4 2]", "no more tensors")
	wantFault(t, s.Fits(nil, slots), fault.Data, modelFile)
	wantFault(t, s.Fits(s.Weights, []string{"momentum_buffer"}), fault.Data, optimizerFile, "exp_avg", "momentum_buffer")
	wantFault(t, s.Fits(s.Weights, append(slots, "third")), fault.Data, optimizerFile, "third")
}

// The lines of metrics.jsonl that a checkpoint counts are read, and only if
// they are those lines.
func TestMetrics(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	m, err := MarkMetrics(write("one\ntwo\n"))
	if err != nil || m.Bytes != 8 {
		t.Fatal(m, err)
	}
	for _, text := range []string{"one\ntwo\n", "one\ntwo\nthree\nfo"} {
		if err := m.Verify(write(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, says := range map[string]string{"one\n": "4 bytes", "one\ntwx\nthree\n": "first 8 bytes"} {
		path := write(text)
		err := m.Verify(path)
		wantFault(t, err, fault.Data, path, says)
	}
	err = m.Verify(filepath.Join(t.TempDir(), "none"))
	wantFault(t, err, fault.Missing)
	_, err = MarkMetrics(filepath.Join(t.TempDir(), "none"))
	wantFault(t, err, fault.Missing)
}

// A state in memory is what a checkpoint has, and damage is noticed.
func TestStateInMemory(t *testing.T) {
	want := stateOf(3, 2)
	want.Parts, want.History = [][]byte{{1, 2}, nil, {3}}, []byte("rows")
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b, "memory")
	if err != nil {
		t.Fatal(err)
	}
	saved, _, err := Open(mustSave(t, t.TempDir(), want).Path)
	if err != nil {
		t.Fatal(err)
	}
	got.Path, saved.Path = "", ""
	for k := range got.Parts { // an empty state of a part is nil in one of them
		got.Parts[k], saved.Parts[k] = append([]byte{}, got.Parts[k]...), append([]byte{}, saved.Parts[k]...)
	}
	if !reflect.DeepEqual(got, saved) {
		t.Errorf("in memory\n%+v, in a folder\n%+v", got, saved)
	}
	for n := range len(b) {
		if s, err := Decode(b[:n], "memory"); err == nil && (len(s.Weights) != len(want.Weights) || s.Epoch != want.Epoch) {
			t.Fatalf("%d of %d bytes are another state", n, len(b))
		} else if err != nil && fault.KindOf(err) != fault.Data {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}
