package checkpoint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/safetensors"
	"siafu/ranks/runfolder"
)

// stateOf returns a state that differs between epochs in every part: a network of
// two layers with the given width.
func stateOf(epoch, width int) State {
	half, third := 0.5, 1.0/3+float64(epoch)
	line := runfolder.Epoch{Epoch: epoch, Loss: third, TrainAcc: &half, ValAcc: &third, TestAcc: &half}
	best := line
	best.Epoch = epoch / 2
	var parts [][]byte // of a policy whose ghosts stand, in every second one
	if epoch%2 > 0 {
		parts = [][]byte{{byte(epoch), 2, 3}, {}, {4}}
	}
	return State{
		Version: "0.1.0", Epoch: epoch, Seed: math.MaxUint64 - uint64(epoch),
		Settings: Settings{"lr": "0.01", "dataset": "cora"},
		Metadata: map[string]string{"model": "gcn"},
		Metrics:  Metrics{Bytes: int64(epoch) << 33, SHA256: "ab"},
		Last:     &line, Best: &Best{Line: best, Weights: weightsOf(epoch, width, 1)},
		Weights: weightsOf(epoch, width, 2), Parts: parts,
		Slots: []Slot{{"exp_avg", weightsOf(epoch, width, 3)}, {"exp_avg_sq", weightsOf(epoch, width, 4)}},
	}
}

// weightsOf returns weights with arbitrary bits, including NaNs.
func weightsOf(epoch, width, stream int) []safetensors.Tensor {
	rng := rand.New(rand.NewPCG(uint64(epoch), uint64(stream)))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(rng.Uint32())
		}
		return x
	}
	return []safetensors.Tensor{
		{Name: "layers.0.weight", Shape: []int{3, width}, Data: draw(3 * width)},
		{Name: "layers.0.bias", Shape: []int{width}, Data: draw(width)},
		{Name: "layers.1.weight", Shape: []int{width, 2}, Data: draw(2 * width)},
	}
}

// difference compares states bit by bit.
func difference(want, got *State) string {
	bits := cmp.Transformer("bits", func(x []float32) string { return string(mapped.Bytes(x)) })
	return cmp.Diff(want, got, bits, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Path" }, cmp.Ignore()))
}

// wantLatest fails the test unless the newest checkpoint is the given one.
func wantLatest(t testing.TB, dir string, want State) []Problem {
	t.Helper()
	got, skipped, err := Latest(dir)
	if err != nil || got == nil {
		t.Fatalf("%v %v", skipped, err)
	}
	if d := difference(&want, got); d != "" {
		t.Error(d)
	}
	return skipped
}

func mustSave(t testing.TB, dir string, s State) Written {
	t.Helper()
	w, err := Save(dir, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// wantFault fails the test unless err has a kind and says all that.
func wantFault(t testing.TB, err error, kind fault.Kind, says ...string) {
	t.Helper()
	for _, s := range says {
		if !strings.Contains(fmt.Sprint(err), s) {
			t.Errorf("%v; want it to say %q", err, s)
		}
	}
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%v of kind %d; want kind %d", err, fault.KindOf(err), kind)
	}
}

// names returns the names in a folder.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// rewrite changes a file of a checkpoint.
func rewrite(t testing.TB, change func([]byte) []byte, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}
