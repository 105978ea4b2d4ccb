package download

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/importers"
	"siafu/internal/fault"
	"siafu/internal/testkit/realdata"

	"github.com/BurntSushi/toml"
)

func TestManifest(t *testing.T) {
	var all map[string]any
	if _, err := toml.Decode(manifestText, &all); err != nil {
		t.Fatal(err)
	}
	var m struct {
		Dataset []dataset `toml:"dataset"`
	}
	meta, err := toml.Decode(manifestText, &m)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatalf("%v, unknown keys %v", err, meta.Undecoded())
	}
	formats := strings.Join(importers.Names(), " ")
	seen := map[string]bool{}
	for _, d := range m.Dataset {
		if seen[d.Name] || d.Name != strings.ToLower(d.Name) || !strings.Contains(formats, d.Format) || !strings.HasSuffix(d.Base, "/") {
			t.Errorf("entry %+v", d)
		}
		seen[d.Name] = true
		if (d.Unzip != "") != strings.HasSuffix(d.Files[0].Name, ".zip") {
			t.Errorf("%s: unzip is %q for %s", d.Name, d.Unzip, d.Files[0].Name)
		}
		for _, f := range d.Files {
			u, err := url.Parse(d.Base + f.Name)
			if err != nil || u.Scheme != "https" || f.Name != filepath.Base(f.Name) {
				t.Errorf("%s: %s: %v", d.Name, f.Name, err)
			}
			if f.SHA256 != "" && !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(f.SHA256) {
				t.Errorf("%s: checksum %q", f.Name, f.SHA256)
			}
		}
	}
	for _, name := range []string{"cora", "citeseer", "pubmed", "ogbn-arxiv", "ogbn-products", "ogbn-papers100m"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestGetCora downloads the real files from a server of our own.
func TestGetCora(t *testing.T) {
	folder := filepath.Dir(realdata.File(t, "originals/planetoid/ind.cora.graph"))
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.ServeFile(w, r, filepath.Join(folder, filepath.Base(r.URL.Path)))
	}))
	defer s.Close()
	dir := t.TempDir()
	o := Options{Dst: filepath.Join(dir, "cora"), Cache: filepath.Join(dir, "cache"), BaseURL: s.URL, Normalize: true}
	r, err := Get(context.Background(), "Cora", o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Vertices != 2708 || r.Edges != 10556 || r.Train != 140 {
		t.Errorf("report is %+v", r)
	}
	m, err := graph.ReadMeta(o.Dst)
	if err != nil || m.Name != "cora" || !m.Normalized {
		t.Errorf("meta is %+v, %v", m, err)
	}
	if _, err := Get(context.Background(), "cora", o); fault.KindOf(err) != fault.Usage {
		t.Errorf("a second time without force: %v", err)
	}
	o.Force = true
	if _, err := Get(context.Background(), "cora", o); err != nil || requests != 8 {
		t.Errorf("with force: %v after %d requests, want the 8 of the first time", err, requests)
	}
}

func TestGetErrors(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for _, tt := range []struct {
		name, dataset string
		edit          func(o *Options)
		kind          fault.Kind
		want          string
	}{
		{"unknown", "facebook", nil, fault.Usage, "ogbn-arxiv"},
		{"no destination", "cora", func(o *Options) { o.Dst = "" }, fault.Usage, "no destination"},
		{"mirror", "cora", func(o *Options) { o.BaseURL = "ftp://x" }, fault.Usage, "ftp://x"},
		{"cache is a file", "cora", func(o *Options) { o.Cache = "/dev/null" }, fault.IO, "/dev/null"},
		{"blocked", "ogbn-papers100m", nil, fault.Config, "papers100M-bin.zip to a format"},
		{"not there", "pubmed", nil, fault.Missing, "ind.pubmed.x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			o := Options{Dst: filepath.Join(dir, "ds"), Cache: filepath.Join(dir, "cache"), BaseURL: s.URL + "/mirror/"}
			if tt.edit != nil {
				tt.edit(&o)
			}
			_, err := get(context.Background(), tt.dataset, o, quick(t))
			if fault.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v (kind %d), want kind %d and %q", err, fault.KindOf(err), tt.kind, tt.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "ds")); err == nil {
				t.Error("it left a dataset")
			}
		})
	}
}

func TestFileURL(t *testing.T) {
	for _, tt := range []struct{ base, want string }{
		{"", "https://a.org/b/c.zip"},
		{"http://127.0.0.1:99", "http://127.0.0.1:99/b/c.zip"},
		{"https://m.org/x/", "https://m.org/x/b/c.zip"},
	} {
		if got, err := fileURL("https://a.org/b/c.zip", tt.base); got != tt.want || err != nil {
			t.Errorf("with %q: %q, %v, want %q", tt.base, got, err, tt.want)
		}
	}
}

// entry is a file of a test archive.
type entry struct {
	name, text string
	mode       os.FileMode
}

func writeZip(t *testing.T, path string, entries ...entry) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(e.text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestUnzipRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []entry
		want    string
	}{
		{"parent", []entry{{name: "../evil", text: "x"}}, "not a file inside"},
		{"deep parent", []entry{{name: "a/../../evil", text: "x"}}, "not a file inside"},
		{"absolute", []entry{{name: "/evil", text: "x"}}, "not a file inside"},
		{"link", []entry{{name: "a", text: "/etc", mode: os.ModeSymlink}}, "not a file inside"},
		{"twice", []entry{{name: "a", text: "x"}, {name: "a", text: "y"}}, "occurs twice"},
		{"bomb", []entry{{name: "a", text: strings.Repeat("0", 10<<20)}}, "more than such a file can unpack to"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path, dst := filepath.Join(dir, "a.zip"), filepath.Join(dir, "in", "dst")
			writeZip(t, path, tt.entries...)
			err := unzip(path, dst)
			if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
			if found, _ := filepath.Glob(filepath.Join(dir, "*evil*")); len(found) > 0 {
				t.Errorf("it wrote %q", found)
			}
			if found, _ := filepath.Glob(filepath.Join(dir, "in", "*evil*")); len(found) > 0 {
				t.Errorf("it wrote %q", found)
			}
		})
	}
	t.Run("rubbish", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.zip")
		if err := os.WriteFile(path, []byte("PK rubbish"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := unzip(path, t.TempDir()); fault.KindOf(err) != fault.Data {
			t.Errorf("error is %v", err)
		}
	})
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

// TestLoadOGB imports an archive in the layout of the benchmark's.
func TestLoadOGB(t *testing.T) {
	dir := t.TempDir()
	d := dataset{Name: "tiny", Format: "ogb", Unzip: "arxiv", Files: []file{{Name: "arxiv.zip"}}, Symmetrise: true}
	writeZip(t, filepath.Join(dir, "arxiv.zip"),
		entry{name: "arxiv/", mode: os.ModeDir},
		entry{name: "arxiv/raw/num-node-list.csv.gz", text: zipped("4\n")},
		entry{name: "arxiv/raw/num-edge-list.csv.gz", text: zipped("3\n")},
		entry{name: "arxiv/raw/edge.csv.gz", text: zipped("0,1\n1,2\n2,3\n")},
		entry{name: "arxiv/raw/node-feat.csv.gz", text: zipped("1,0\n0,1\n1,1\n0,0.5\n")},
		entry{name: "arxiv/raw/node-label.csv.gz", text: zipped("0\n1\n0\n1\n")},
		entry{name: "arxiv/split/time/train.csv.gz", text: zipped("0\n1\n")},
		entry{name: "arxiv/split/time/valid.csv.gz", text: zipped("2\n")},
		entry{name: "arxiv/split/time/test.csv.gz", text: zipped("3\n")},
	)
	r, err := load(d, dir, Options{Dst: filepath.Join(dir, "ds"), Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if r.Vertices != 4 || r.Edges != 6 || r.Train != 2 {
		t.Errorf("report is %+v", r)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".unpacked-*")); len(left) > 0 {
		t.Errorf("%q was left", left)
	}
}
