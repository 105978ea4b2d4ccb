package checkpoint

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// A checkpoint is read with all bits that were saved.
func TestRoundTrip(t *testing.T) {
	plain := stateOf(7, 5)
	plain.Slots = nil
	unevaluated := stateOf(0, 5)
	unevaluated.Last, unevaluated.Best = nil, nil
	for name, want := range map[string]State{
		"adam": stateOf(20, 5), "sgd without momentum": plain, "before an evaluation": unevaluated,
		"an epoch of seven digits": stateOf(1_234_567, 1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run", Dir)
			w := mustSave(t, dir, want)
			if skipped := wantLatest(t, dir, want); skipped != nil {
				t.Error(skipped)
			}
			size := int64(0)
			for _, name := range names(t, w.Path) {
				info, err := os.Stat(filepath.Join(w.Path, name))
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			if got := names(t, dir); len(got) != 1 || w.Bytes != size || w.Path != filepath.Join(dir, got[0]) {
				t.Errorf("%+v beside %v of %d bytes", w, got, size)
			}
		})
	}
}

// A checkpoint of the same epoch is replaced as a whole.
func TestSaveAgain(t *testing.T) {
	dir := t.TempDir()
	first := stateOf(4, 5)
	mustSave(t, dir, first)
	second := stateOf(4, 9)
	second.Best = nil
	mustSave(t, dir, second)
	wantLatest(t, dir, second)
	if got := names(t, dir); !slices.Equal(got, []string{"epoch-000004"}) {
		t.Error(got)
	}
}

// A loss that is no number cannot be saved, and what is there stays.
func TestSaveNotANumber(t *testing.T) {
	dir := t.TempDir()
	good := stateOf(1, 5)
	mustSave(t, dir, good)
	bad := stateOf(2, 5)
	bad.Last.Loss = math.NaN()
	_, err := Save(dir, bad, nil)
	wantFault(t, err, fault.Runtime, "epoch-000002/state.json", "--lr")
	wantLatest(t, dir, good)
	if got := names(t, dir); len(got) != 1 {
		t.Error(got)
	}
}

// Whichever byte of whichever file is changed, the checkpoint is no longer
// taken, the fault names the file, and the one before is read instead.
func TestEveryByte(t *testing.T) {
	dir := t.TempDir()
	old, young := stateOf(20, 5), stateOf(40, 5)
	mustSave(t, dir, old)
	path := mustSave(t, dir, young).Path
	for _, name := range names(t, path) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(path, name)
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			defer os.WriteFile(file, whole, 0o644)
			recognised := func(b []byte, what string) {
				t.Helper()
				if err := os.WriteFile(file, b, 0o644); err != nil {
					t.Fatal(err)
				}
				_, _, err := Open(path)
				if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), file) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for i := range whole {
				b := slices.Clone(whole)
				b[i] ^= 1 << (i % 8)
				recognised(b, fmt.Sprintf("bit %d of byte %d", i%8, i))
			}
			for n := 0; n < len(whole); n += 1 + n/8 {
				recognised(whole[:n], fmt.Sprintf("the first %d bytes", n))
			}
			recognised(append(slices.Clone(whole), 0), "a byte more")
			if skipped := wantLatest(t, dir, old); len(skipped) != 1 || skipped[0].Path != path {
				t.Errorf("%v", skipped)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			_, _, err = Open(path)
			wantFault(t, err, fault.Data, file, "missing")
			wantLatest(t, dir, old)
		})
	}
	wantLatest(t, dir, young)
}

// forged returns a manifest that has been given its checksum again.
func forged(change func(*manifest)) func([]byte) []byte {
	return func(b []byte) []byte {
		m, err := decodeManifest(b)
		if err != nil {
			panic(err)
		}
		change(&m)
		return m.encode()
	}
}

// Invalid contents with valid checksums are detected.
func TestImpossible(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func([]byte) []byte
		says   string
	}{
		{"a newer format", forged(func(m *manifest) { m.Format = 3 }), "format 3"},
		{"another epoch", forged(func(m *manifest) { m.Epoch = 3 }), "does not match"},
		{"no best weights", forged(func(m *manifest) { m.Files = m.Files[1:] }), "does not match"},
		{"no model", forged(func(m *manifest) { m.Files = slices.Delete(m.Files, 1, 2) }), "it lists"},
		{"a file from elsewhere", forged(func(m *manifest) { m.Files[1].Name = "../model.safetensors" }), "it lists"},
		{"a file twice", forged(func(m *manifest) { m.Files = slices.Insert(m.Files, 0, m.Files[0]) }), "it lists"},
		{"no checksum", forged(func(m *manifest) { m.Files[0].SHA256 = "" }), "checksum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := mustSave(t, dir, stateOf(5, 3)).Path
			rewrite(t, tc.change, path, manifestFile)
			_, _, err := Open(path)
			wantFault(t, err, fault.Data, path, tc.says)
		})
	}
	t.Run("slots of other weights", func(t *testing.T) {
		dir := t.TempDir()
		path := mustSave(t, dir, stateOf(5, 3)).Path
		other := mustSave(t, t.TempDir(), stateOf(5, 4)).Path
		mix(t, path, other, optimizerFile)
		_, _, err := Open(path)
		wantFault(t, err, fault.Data, filepath.Join(path, optimizerFile), "in shape")
	})
	t.Run("best of other weights", func(t *testing.T) {
		path := mustSave(t, t.TempDir(), stateOf(5, 3)).Path
		other := mustSave(t, t.TempDir(), stateOf(5, 4)).Path
		mix(t, path, other, bestFile)
		_, _, err := Open(path)
		wantFault(t, err, fault.Data, filepath.Join(path, bestFile), "its weights differ")
	})
	t.Run("in the folder of another epoch", func(t *testing.T) {
		dir := t.TempDir()
		path := mustSave(t, dir, stateOf(5, 3)).Path
		moved := filepath.Join(dir, folderName(9))
		if err := os.Rename(path, moved); err != nil {
			t.Fatal(err)
		}
		s, skipped, err := Latest(dir)
		if s != nil || err != nil || len(skipped) != 1 {
			t.Errorf("%v %v %v", s, skipped, err)
		}
	})
}

// mix puts a file of another checkpoint, with its sum, into one.
func mix(t *testing.T, path, other, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(other, name))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := readManifest(other)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, func([]byte) []byte { return b }, path, name)
	rewrite(t, forged(func(m *manifest) { *m.find(name) = *theirs.find(name) }), path, manifestFile)
}

// A user may point at a checkpoint, at the folder of several and at the run.
func TestOpen(t *testing.T) {
	run := t.TempDir()
	dir := filepath.Join(run, Dir)
	old, young := stateOf(20, 5), stateOf(40, 5)
	oldPath := mustSave(t, dir, old).Path
	youngPath := mustSave(t, dir, young).Path
	elsewhere := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(elsewhere, os.DirFS(oldPath)); err != nil {
		t.Fatal(err)
	}
	opens := func(path string, want State, problems int) {
		t.Helper()
		got, skipped, err := Open(path)
		if err != nil || len(skipped) != problems {
			t.Fatalf("%s: %v %v", path, skipped, err)
		}
		if d := difference(&want, got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
	opens(run, young, 0)
	opens(dir+"/", young, 0)
	opens(oldPath, old, 0)
	opens(elsewhere, old, 0)

	rewrite(t, func(b []byte) []byte { return b[1:] }, youngPath, modelFile)
	opens(run, old, 1)
	_, _, err := Open(youngPath)
	wantFault(t, err, fault.Data, modelFile)
	rewrite(t, func(b []byte) []byte { return b[1:] }, oldPath, stateFile)
	_, skipped, err := Open(run)
	wantFault(t, err, fault.Data, filepath.Join(youngPath, modelFile))
	if len(skipped) != 2 {
		t.Error(skipped)
	}

	_, _, err = Open(filepath.Join(run, "none"))
	wantFault(t, err, fault.Missing, "none")
	_, _, err = Open(t.TempDir())
	wantFault(t, err, fault.Missing, "no checkpoint")
	_, _, err = Open(filepath.Join(youngPath, modelFile))
	wantFault(t, err, fault.Usage, "--init")
}

// A full disk fails a save and nothing else.
func TestFullDisk(t *testing.T) {
	dir := hosttest.SmallDisk(t, "128k")
	good := stateOf(1, 50)
	mustSave(t, dir, good)
	_, err := Save(dir, stateOf(2, 5000), nil)
	wantFault(t, err, fault.IO, filepath.Join(dir, "epoch-000002", ""), "no space", "free disk space")
	if got := names(t, dir); !slices.Equal(got, []string{"epoch-000001"}) {
		t.Errorf("left behind: %v", got)
	}
	wantLatest(t, dir, good)
	next := stateOf(3, 50)
	mustSave(t, dir, next)
	wantLatest(t, dir, next)
}

// If a folder cannot be made, the fault names it.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Save(filepath.Join(file, Dir), stateOf(1, 1), nil)
	wantFault(t, err, fault.IO, file)
	if _, _, err := Latest(filepath.Join(file, Dir)); fault.KindOf(err) != fault.IO {
		t.Error(err)
	}
}

// reader is written against the description of the format alone.
const reader = `
import json, struct, sys, torch
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = bytearray(f.read())
    for name, e in head.items():
        if name == "__metadata__":
            print(name, e["epoch"])
            continue
        assert e["dtype"] == "F32"
        lo, hi = e["data_offsets"]
        t = torch.frombuffer(data, dtype=torch.int32, offset=lo, count=(hi - lo) // 4).reshape(e["shape"])
        print(name, list(t.shape), int(t.sum(dtype=torch.int64)))
`

// PyTorch sees the names, shapes and bits that were saved.
func TestPyTorchReads(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("no PyTorch on this machine: install python3-torch")
	}
	s := stateOf(20, 5)
	path := mustSave(t, t.TempDir(), s).Path
	var want strings.Builder
	for _, f := range []struct {
		slot  string
		epoch int
		list  []Slot
	}{
		{"", 20, []Slot{{"", s.Weights}}}, {".", 20, s.Slots}, {"", 10, []Slot{{"", s.Best.Weights}}},
	} {
		fmt.Fprintf(&want, "__metadata__ %d\n", f.epoch)
		for _, slot := range f.list {
			for _, x := range slot.Tensors {
				sum := int64(0)
				for _, v := range x.Data {
					sum += int64(int32(math.Float32bits(v)))
				}
				shape := strings.ReplaceAll(fmt.Sprint(x.Shape), " ", ", ")
				fmt.Fprintf(&want, "%s%s%s %s %d\n", x.Name, f.slot, slot.Name, shape, sum)
			}
		}
	}
	got, err := exec.Command(python, "-c", reader,
		filepath.Join(path, modelFile), filepath.Join(path, optimizerFile), filepath.Join(path, bestFile)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if d := cmp.Diff(want.String(), string(got)); d != "" {
		t.Error(d)
	}
}
