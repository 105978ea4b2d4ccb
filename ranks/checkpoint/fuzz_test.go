package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"siafu/internal/testkit/decodertest"
)

// sample returns a file of a checkpoint.
func sample(f *testing.F, name string) []byte {
	path := mustSave(f, f.TempDir(), stateOf(3, 2)).Path
	b, err := os.ReadFile(filepath.Join(path, name))
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// A manifest that is accepted is one that was written.
func FuzzManifest(f *testing.F) {
	b := sample(f, manifestFile)
	f.Add(b)
	f.Add(forged(func(m *manifest) { m.Format = 7 })(b))
	f.Add([]byte(`{"format":1,"files":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m manifest
		var err error
		decodertest.Heap(t, int64(len(b)), func() { m, err = decodeManifest(b) })
		if err != nil {
			return
		}
		if !bytes.Equal(m.encode(), b) || m.find(modelFile) == nil || m.find(optimizerFile) == nil || m.find(stateFile) == nil {
			t.Errorf("%q is accepted", b)
		}
	})
}

// A state that is accepted can be saved again.
func FuzzState(f *testing.F) {
	f.Add(sample(f, stateFile))
	f.Add([]byte("null"))
	f.Add([]byte(`{"best":{},"slots":["a","a"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s State
		var err error
		decodertest.Heap(t, int64(len(b)), func() { s, err = DecodeHead(b) })
		if err != nil {
			return
		}
		text, err := s.EncodeHead()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeHead(text); err != nil || again.Epoch != s.Epoch || len(again.Slots) != len(s.Slots) {
			t.Errorf("%q reads %v, %v", text, again, err)
		}
	})
}
