package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scene is the fixture of bad-input cases: a dataset partitioned for two ranks, a run folder,
// the same graph in the raw layout, and an empty folder for the command's output.
type scene struct {
	t                    *testing.T
	dir                  string
	data, run, raw, free string
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, dir: t.TempDir()}
	s.data, s.run, s.raw, s.free = s.path("data"), s.path("run"), s.path("raw"), s.path("free")
	must(t, "generate", s.data, "--vertices", "60", "--edges", "300", "--features", "4", "--classes", "3")
	must(t, "partition", s.data, "--parts", "2")
	must(t, "train", s.data, "--ranks", "2", "--servers", "0", "--epochs", "2", "--out", s.run)
	s.writeRaw()
	if err := os.Mkdir(s.free, 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) path(rel ...string) string {
	return filepath.Join(append([]string{s.dir}, rel...)...)
}

// writeRaw makes a path of 5 vertices with 2 features and 2 classes.
func (s *scene) writeRaw() {
	if err := os.MkdirAll(s.raw, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.file(s.path("raw", "graph.edges.bin"), u32(0, 1, 1, 0, 1, 2, 2, 1, 2, 3, 3, 2))
	s.file(s.path("raw", "features.bin"), f32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	s.file(s.path("raw", "labels.bin"), u32(0, 1, 0, 1, math.MaxUint32))
	s.file(s.path("raw", "split.bin"), []byte{1, 2, 3, 1, 0})
	s.file(s.path("raw", "meta.json"), []byte(`{"name":"five","nodes":5,"edges":6,"undirected":true,"feature_dim":2,"classes":2}`))
}

func u32(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func f32(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func (s *scene) file(path string, content []byte) {
	s.t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) read(path string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// flip inverts one bit in the middle of a file, cut takes its second half off.
func (s *scene) flip(path string) {
	b := s.read(path)
	b[len(b)/2] ^= 0x10
	s.file(path, b)
}

func (s *scene) cut(path string) {
	b := s.read(path)
	s.file(path, b[:len(b)/2])
}

// replace edits a text file.
func (s *scene) replace(path, old, new string) {
	text := string(s.read(path))
	if !strings.Contains(text, old) {
		s.t.Fatalf("%s does not hold %q", path, old)
	}
	s.file(path, []byte(strings.Replace(text, old, new, 1)))
}

// tree returns every path below the scene with a hash of the content of a file or the target of
// a link.
func (s *scene) tree() map[string]string { return treeOf(s.t, s.dir) }

func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = info.Mode().String()
		if to, err := os.Readlink(path); err == nil {
			found[path] += to
		} else if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[path] += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// changes returns the paths at which two trees differ.
func changes(before, after map[string]string) []string {
	var list []string
	for path := range before {
		if after[path] != before[path] {
			list = append(list, path)
		}
	}
	for path := range after {
		if _, old := before[path]; !old {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// badInput is one case: what is done to the scene, the command line, and what
// must come of it.
type badInput struct {
	name string
	harm func(*scene)
	args func(*scene) []string
	code int
	says []string
	// writes lists the files that a command may have written before its failure.
	writes []string
}

func importRaw(s *scene) []string {
	return []string{"import", "--from", "raw", s.raw, filepath.Join(s.free, "new")}
}

func trainTwo(s *scene) []string {
	return []string{"train", s.data, "--ranks", "2", "--servers", "0", "--epochs", "1", "--out", filepath.Join(s.free, "run")}
}

// begun are the files of a run that failed after it had begun.
var begun = []string{"config.toml", "log.txt", "lock", "metrics.jsonl", "run.json"}

var badInputs = []badInput{
	// The command line.
	{"no such command", nil, func(s *scene) []string { return []string{"trian", s.data} }, 64, []string{"trian", "train"}, nil},
	{"unknown flag", nil, func(s *scene) []string { return []string{"train", s.data, "--hiden", "3"} }, 64,
		[]string{"--hiden", "--hidden"}, nil},
	{"flag of another type", nil, func(s *scene) []string { return []string{"train", s.data, "--hidden", "many"} }, 64,
		[]string{"--hidden", "many"}, nil},
	{"value not in the list", nil, func(s *scene) []string { return []string{"train", s.data, "--model", "gnc"} }, 64,
		[]string{"--model", "gnc", "gcn"}, nil},
	{"value out of range", nil, func(s *scene) []string { return []string{"train", s.data, "--dropout", "1.5"} }, 64,
		[]string{"--dropout=1.5", "below 1"}, nil},
	{"no dataset given", nil, func(*scene) []string { return []string{"train"} }, 64, []string{"data"}, nil},
	{"two datasets", nil, func(s *scene) []string { return []string{"train", s.data, s.data} }, 64, []string{"[CONFIG.toml] DATA"}, nil},
	{"dataset absent", nil, func(s *scene) []string { return []string{"train", s.path("absent")} }, 66,
		[]string{"absent", "siafu import"}, nil},
	{"a folder that is no dataset", nil, func(s *scene) []string { return []string{"info", s.free} }, 66,
		[]string{"not a dataset folder"}, nil},

	// The configuration file.
	{"config absent", nil, func(s *scene) []string { return []string{"train", s.path("c.toml"), s.data} }, 66, []string{"c.toml"}, nil},
	{"unknown key", func(s *scene) { s.file(s.path("c.toml"), []byte("epochs = 3\nhiden = 4\n")) },
		func(s *scene) []string { return []string{"train", s.path("c.toml"), s.data} }, 78, []string{"line 2", `"hiden"`, `"hidden"`}, nil},
	{"key of another type", func(s *scene) { s.file(s.path("c.toml"), []byte("\nhidden = \"four\"\n")) },
		func(s *scene) []string { return []string{"train", s.path("c.toml"), s.data} }, 78, []string{"line 2", "hidden"}, nil},
	{"no TOML", func(s *scene) { s.file(s.path("c.toml"), []byte("hidden: 4\n")) },
		func(s *scene) []string { return []string{"train", s.path("c.toml"), s.data} }, 78, []string{"line 1"}, nil},

	// Importing.
	{"edge out of range", func(s *scene) { s.file(s.path("raw", "graph.edges.bin"), u32(0, 1, 1, 0, 1, 2, 2, 1, 2, 9, 3, 2)) }, importRaw,
		65, []string{"graph.edges.bin", "9", "edge 4"}, nil},
	{"truncated edges", func(s *scene) { s.file(s.path("raw", "graph.edges.bin"), u32(0, 1, 1)) }, importRaw, 65,
		[]string{"graph.edges.bin", "12"}, nil},
	{"NaN", func(s *scene) {
		s.file(s.path("raw", "features.bin"), f32(1, 2, 3, float32(math.NaN()), 5, 6, 7, 8, 9, 10))
	}, importRaw, 65, []string{"feature 1 of vertex 1", "NaN"}, nil},
	{"truncated features", func(s *scene) { s.cut(s.path("raw", "features.bin")) }, importRaw, 65,
		[]string{"features.bin", "40", "20"}, nil},
	{"wrong dimension", func(s *scene) { s.replace(s.path("raw", "meta.json"), `"feature_dim":2`, `"feature_dim":3`) }, importRaw, 65,
		[]string{"features.bin", "60", "40"}, nil},
	{"label out of range", func(s *scene) { s.file(s.path("raw", "labels.bin"), u32(0, 7, 0, 1, 0)) }, importRaw, 65,
		[]string{"labels.bin", "vertex 1 is 7", "-1 (none) to 1"}, nil},
	{"split of an unlabelled vertex", func(s *scene) { s.file(s.path("raw", "split.bin"), []byte{1, 2, 3, 1, 1}) }, importRaw, 65,
		[]string{"vertex 4", "no label"}, nil},
	{"unknown split value", func(s *scene) { s.file(s.path("raw", "split.bin"), []byte{1, 2, 3, 1, 8}) }, importRaw, 65,
		[]string{"vertex 4", "8"}, nil},
	{"source absent", nil, func(s *scene) []string {
		return []string{"import", "--from", "raw", s.path("none"), filepath.Join(s.free, "new")}
	}, 66, []string{"none"}, nil},
	{"unknown format", nil, func(s *scene) []string {
		return []string{"import", "--from", "gml", s.raw, filepath.Join(s.free, "new")}
	}, 64, []string{"gml", "planetoid"}, nil},
	{"target exists", nil, func(s *scene) []string { return []string{"import", "--from", "raw", s.raw, s.data} }, 64,
		[]string{"exists", "--force"}, nil},
	{"target is no dataset", func(s *scene) { s.file(filepath.Join(s.free, "mine.txt"), []byte("precious")) },
		func(s *scene) []string { return []string{"import", "--force", "--from", "raw", s.raw, s.free} }, 64,
		[]string{"not a dataset folder", "not replaced"}, nil},
	{"target below a file", nil, func(s *scene) []string {
		return []string{"import", "--from", "raw", s.raw, filepath.Join(s.raw, "meta.json", "new")}
	}, 74, []string{"meta.json"}, nil},

	// Partitioning.
	{"more parts than vertices", nil, func(s *scene) []string { return []string{"partition", s.data, "--parts", "61"} }, 78,
		[]string{"61", "60 vertices"}, nil},
	{"no parts", nil, func(s *scene) []string { return []string{"partition", s.data, "--parts", "0"} }, 64, []string{"0 parts"}, nil},
	{"unknown method", nil, func(s *scene) []string { return []string{"partition", s.data, "--parts", "2", "--method", "metis"} }, 64,
		[]string{"metis", "fennel"}, nil},
	{"owner out of range", func(s *scene) { s.file(s.path("owners"), []byte(strings.Repeat("0\n", 59)+"2\n")) },
		func(s *scene) []string {
			return []string{"partition", s.data, "--parts", "2", "--method", "file:" + s.path("owners")}
		}, 65, []string{"owners", "line 60", "2"}, nil},
	{"owners of another graph", func(s *scene) { s.file(s.path("owners"), []byte("0\n1\n")) },
		func(s *scene) []string {
			return []string{"partition", s.data, "--parts", "2", "--method", "file:" + s.path("owners")}
		}, 65, []string{"owners", "60"}, nil},

	// Training.
	{"damaged shard", func(s *scene) { s.flip(s.path("data", "parts", "2", "1.part")) }, trainTwo, 65, []string{"1.part", "checksum"}, nil},
	{"truncated shard", func(s *scene) { s.cut(s.path("data", "parts", "2", "0.part")) }, trainTwo, 65, []string{"0.part"}, nil},
	{"shard of another rank", func(s *scene) {
		s.file(s.path("data", "parts", "2", "1.part"), s.read(s.path("data", "parts", "2", "0.part")))
	}, trainTwo, 65, []string{"1.part", "siafu partition"}, nil},
	{"shard of another P", func(s *scene) {
		must(s.t, "partition", s.data, "--parts", "3")
		s.file(s.path("data", "parts", "2", "1.part"), s.read(s.path("data", "parts", "3", "1.part")))
	}, trainTwo, 65, []string{"1.part", "siafu partition"}, nil},
	{"dataset changed after partitioning", func(s *scene) {
		parts := s.path("data", "parts")
		kept := s.path("kept")
		rename(s.t, parts, kept)
		must(s.t, "generate", "--force", s.data, "--vertices", "60", "--edges", "300", "--features", "4", "--classes", "3", "--seed", "2")
		rename(s.t, kept, parts)
	}, trainTwo, 65, []string{"changed", "siafu partition"}, nil},
	{"shards of two partitionings", func(s *scene) {
		old := s.read(s.path("data", "parts", "2", "1.part"))
		must(s.t, "partition", s.data, "--parts", "2", "--method", "hash")
		s.file(s.path("data", "parts", "2", "1.part"), old)
	}, trainTwo, 65, []string{"different partitionings"}, nil},
	{"damaged meta.json", func(s *scene) { s.cut(s.path("data", "meta.json")) }, trainTwo, 65,
		[]string{"meta.json", "import the dataset again"}, nil},
	{"meta.json of another version", func(s *scene) { s.replace(s.path("data", "meta.json"), `"format": 1`, `"format": 9`) }, trainTwo, 65,
		[]string{"format is 9"}, nil},
	{"more servers than graph ranks", nil, func(s *scene) []string { return append(trainTwo(s), "--servers", "2") }, 78,
		[]string{"2 servers", "2 ranks"}, nil},
	{"more ranks than vertices", nil, func(s *scene) []string { return append(trainTwo(s), "--ranks", "70") }, 78,
		[]string{"70", "60 vertices"}, nil},
	{"run folder exists", nil, func(s *scene) []string { return append(trainTwo(s), "--out", s.run) }, 64,
		[]string{"exists", "--force"}, nil},
	{"run folder is another folder", nil, func(s *scene) []string { return append(trainTwo(s), "--out", s.raw, "--force") }, 64,
		[]string{"not a run folder"}, nil},
	{"run folder below a file", nil, func(s *scene) []string {
		return append(trainTwo(s), "--out", filepath.Join(s.raw, "meta.json", "run"))
	}, 74, []string{"meta.json"}, nil},
	{"weights of another shape", nil, func(s *scene) []string {
		return append(trainTwo(s), "--hidden", "8", "--init", filepath.Join(s.run, "model.safetensors"))
	}, 65, []string{"layers.0.weight", "[4 16]", "[4 8]"}, nil},
	{"truncated weights", func(s *scene) { s.cut(filepath.Join(s.run, "model.safetensors")) }, func(s *scene) []string {
		return append(trainTwo(s), "--init", filepath.Join(s.run, "model.safetensors"))
	}, 65, []string{"model.safetensors"}, nil},
	{"weights absent", nil, func(s *scene) []string { return append(trainTwo(s), "--init", s.path("none.safetensors")) }, 66,
		[]string{"none.safetensors"}, nil},
	{"diverging", nil, func(s *scene) []string {
		return append(trainTwo(s), "--lr", "1e30", "--optimizer", "sgd", "--epochs", "20")
	}, 76, []string{"epoch", "--lr", "layers."}, append(slices.Clone(begun), "model.safetensors", "vertices.known", "summary.json")},

	// After training.
	{"model for other data", func(s *scene) {
		must(s.t, "generate", filepath.Join(s.path("other")), "--vertices", "30", "--edges", "60", "--features", "5", "--classes", "3")
	}, func(s *scene) []string { return []string{"predict", s.run, s.path("other")} }, 65, []string{"5 features", "trained on 4"}, nil},
	{"damaged summary", func(s *scene) { s.cut(filepath.Join(s.run, "summary.json")) },
		func(s *scene) []string { return []string{"report", s.run} }, 65, []string{"summary.json"}, nil},
	{"damaged metrics", func(s *scene) { s.replace(filepath.Join(s.run, "metrics.jsonl"), `"epoch":2`, `"epoch":two`) },
		func(s *scene) []string { return []string{"report", s.run} }, 65, []string{"metrics.jsonl", "line 2"}, nil},
	{"no run folder", nil, func(s *scene) []string { return []string{"report", s.raw} }, 66,
		[]string{"summary.json", "name a run folder"}, nil},
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// Bad input gives its exit code and a message with file, value and remedy, and
// leaves everything as it was, to the byte.
func TestBadInput(t *testing.T) {
	for _, tc := range badInputs {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t)
			if tc.harm != nil {
				tc.harm(s)
			}
			before := s.tree()
			r := siafu(tc.args(s)...)
			if r.code != tc.code {
				t.Errorf("exit %d, want %d", r.code, tc.code)
			}
			for _, want := range tc.says {
				if !strings.Contains(r.err, want) {
					t.Errorf("the message lacks %q", want)
				}
			}
			if t.Failed() {
				t.Logf("stderr: %s", r.err)
			}
			for _, path := range changes(before, s.tree()) {
				if !slices.Contains(tc.writes, filepath.Base(path)) && (tc.writes == nil || path != filepath.Join(s.free, "run")) {
					t.Errorf("changed: %s", path)
				}
			}
		})
	}
}

// Every file of a dataset is noticed when a bit of it flips or its end is
// missing.
func TestDamagedDataset(t *testing.T) {
	for _, args := range [][]string{{}, {"--directed"}} {
		data := small(t, args...)
		entries, err := os.ReadDir(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(data, e.Name())
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for name, harmed := range map[string][]byte{
				"cut":   whole[:len(whole)-3],
				"empty": {},
				"flip":  flipped(whole, len(whole)-3),
				"head":  flipped(whole, 9),
			} {
				if err := os.WriteFile(path, harmed, 0o644); err != nil {
					t.Fatal(err)
				}
				if r := siafu("info", data); r.code != 65 || !strings.Contains(r.err, e.Name()) {
					t.Errorf("%s %s: exit %d %s", e.Name(), name, r.code, r.err)
				}
			}
			if err := os.WriteFile(path, whole, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		must(t, "info", data)
	}
}

func flipped(b []byte, at int) []byte {
	c := slices.Clone(b)
	c[at] ^= 4
	return c
}
