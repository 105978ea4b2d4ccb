package importers

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/host"
)

// deflated returns an npz file of compressed arrays.
func deflated(contents map[string][]byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range contents {
		f, err := w.Create(name + ".npy")
		if err != nil {
			panic(err)
		}
		f.Write(content)
	}
	w.Close()
	return b.Bytes()
}

// TestMemoryFirst: an import that needs more memory than there is ends before it allocates the
// memory, whatever its source declares.
func TestMemoryFirst(t *testing.T) {
	defer host.LimitMemory(1 << 20)()
	const wide = 5000
	for name, c := range map[string]struct {
		from, src string
		files     map[string][]byte
		remedy    string
	}{
		"columns": {"csv", "", map[string][]byte{
			"nodes.csv": []byte("id,label" + strings.Repeat(",x", wide) + "\na,p" + strings.Repeat(",1", wide) + "\n"),
			"edges.csv": []byte("src,dst\n")}, "remove some of its 5002 columns"},
		"packed array": {"npz", "/a.npz", map[string][]byte{
			"a.npz": deflated(map[string][]byte{"x": array("<f4", "(600, 1000)", make([]byte, 600*1000*4)),
				"edge_index": array("<i8", "(2, 0)", nil)})}, "use a machine with more memory"},
		"doubles": {"snap", "", with(tinySnap(), "features.npy", array("<f8", "(600, 1000)", make([]byte, 600*1000*8))),
			"use a machine with more memory"},
	} {
		_, err := load(t, c.from, Options{Src: files(t, c.files) + c.src})
		if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "MB of memory, but") ||
			!strings.Contains(err.Error(), c.remedy) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
