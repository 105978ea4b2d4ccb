package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/ranks/runfolder"
)

// gallery returns the fixture of refusal cases: a run of six epochs with a checkpoint of each, its
// dataset, datasets that differ from it in one property, and the user's own folders and files.
//
//	raw-*, data, features, labels, split, graph, wide   raw layouts and datasets
//	run, trace.json                                     a run on data, and its timeline
//	mine/checkpoints/resnet.pt, mine.txt                the user's
func gallery(t *testing.T) *scene {
	s := &scene{t: t, dir: t.TempDir()}
	s.data, s.run, s.free = s.path("data"), s.path("run"), s.path("free")
	for name, harm := range map[string]func(raw string){
		"data":     func(string) {},
		"features": func(raw string) { s.file(filepath.Join(raw, "features.bin"), f32(1, 2, 3, 4, 5, 6, 7, 8, 9, 11)) },
		"labels":   func(raw string) { s.file(filepath.Join(raw, "labels.bin"), u32(1, 1, 0, 0, 1<<32-1)) },
		"split":    func(raw string) { s.file(filepath.Join(raw, "split.bin"), []byte{1, 3, 2, 1, 0}) },
		"graph": func(raw string) {
			s.file(filepath.Join(raw, "graph.edges.bin"), u32(0, 1, 1, 0, 1, 2, 2, 1, 0, 3, 3, 0))
		},
		"wide": func(raw string) {
			s.file(filepath.Join(raw, "features.bin"), f32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5))
			s.replace(filepath.Join(raw, "meta.json"), `"feature_dim":2`, `"feature_dim":3`)
		},
	} {
		s.raw = s.path("raw")
		s.writeRaw()
		harm(s.raw)
		must(t, "import", "--from", "raw", s.raw, s.path(name))
		rename(t, s.raw, s.path("raw-"+name))
	}
	s.raw = s.path("raw-data")
	must(t, "partition", s.data, "--parts", "1")
	must(t, "train", s.data, "--epochs", "6", "--keep", "0", "--checkpoint-every", "1e", "--out", s.run, "--quiet",
		"--trace", s.path("trace.json"))
	must(t, "predict", s.run, s.data)
	for _, dir := range []string{s.free, s.path("mine", "checkpoints")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.file(s.path("mine", "checkpoints", "resnet.pt"), []byte("precious"))
	s.file(s.path("mine.txt"), []byte("precious"))
	return s
}

// refusal is a command that must be refused: its preparation, its arguments with "@" for the
// gallery, and the expected result.
type refusal struct {
	name string
	harm func(*scene)
	args string
	code int
	says string // words, all of which the message has
}

func put(path ...string) func(*scene) {
	return func(s *scene) {
		if err := os.MkdirAll(s.path(path[:len(path)-1]...), 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.file(s.path(path...), []byte("precious"))
	}
}

const resume = "train @/data --epochs 9 --out @/run --resume auto"

var refusals = []refusal{
	// Going on with something else than what was trained.
	{"other features", nil, "train @/features --epochs 9 --out @/run --resume auto", 78, "dataset feature values CRC-32C checkpoint now"},
	{"other labels", nil, "train @/labels --epochs 9 --out @/run --resume auto", 78, "dataset labels.bin"},
	{"other split", nil, "train @/split --epochs 9 --out @/run --resume auto", 78, "dataset split.bin"},
	{"other edges", nil, "train @/graph --epochs 9 --out @/run --resume auto", 78, "dataset graph.csr"},
	{"other width", nil, "train @/wide --epochs 9 --out @/run --resume auto", 78, `dataset features "2 dense" "3 dense"`},
	{"other features, to a new folder", nil, "train @/features --epochs 9 --out @/free/new --resume @/run", 78, "dataset feature values"},
	{"other features, after the end", nil, "train @/features --epochs 6 --out @/run --resume auto", 78, "dataset feature values"},
	{"other settings", nil, resume + " --hidden 3 --lr 0.5", 78, `hidden "16" "3" lr "0.5"`},
	{"other settings, after the end", nil, "train @/data --epochs 6 --out @/run --resume auto --hidden 3", 78, `hidden "16" "3"`},

	// Going on where something is missing or damaged.
	{"metrics cut", func(s *scene) { s.cut(s.path("run", "metrics.jsonl")) }, resume, 65, "metrics.jsonl bytes"},
	{"metrics changed", func(s *scene) { s.flip(s.path("run", "metrics.jsonl")) }, resume, 65, "metrics.jsonl"},
	{"metrics changed, from an older one", func(s *scene) { s.file(s.path("run", "metrics.jsonl"), []byte("{}\n")) },
		resume + " --resume @/run/checkpoints/epoch-000002", 65, "metrics.jsonl"},
	{"checkpoint damaged", func(s *scene) { s.flip(s.path("run", "checkpoints", "epoch-000003", "model.safetensors")) },
		resume + " --resume @/run/checkpoints/epoch-000003", 65, "model.safetensors SHA-256"},
	{"all checkpoints damaged", func(s *scene) {
		for _, e := range []string{"1", "2", "3", "4", "5", "6"} {
			s.cut(s.path("run", "checkpoints", "epoch-00000"+e, "state.json"))
		}
	}, resume, 65, "none of its 6 checkpoints"},
	{"no such checkpoint", nil, resume + " --resume @/run/checkpoints/epoch-000077", 66, "epoch-000077"},
	{"notes in a newer checkpoint", put("run", "checkpoints", "epoch-000005", "notes.txt"),
		resume + " --resume @/run/checkpoints/epoch-000002", 64, "notes.txt move"},
	{"a run of an older version", func(s *scene) { remove(s, "run", "run.json") }, resume, 64, "run.json older --init"},
	{"an older one's end", func(s *scene) { remove(s, "run", "run.json") },
		"train @/data --epochs 6 --out @/run --resume auto", 64, "run.json older"},
	{"timeline over a file", nil, resume + " --trace @/mine.txt", 64, "mine.txt not overwritten"},
	{"timeline below a file", nil, resume + " --trace @/mine.txt/trace.json", 74, "mine.txt"},
	{"more ranks than vertices", nil, resume + " --ranks 9 --servers 0", 78, "9 5 vertices"},
	{"shard damaged", func(s *scene) { s.flip(s.path("data", "parts", "1", "0.part")) }, resume, 65, "0.part"},

	// Foreign files remain, with and without --force.
	{"resuming into the user's folder", nil, "train @/data --out @/mine --resume auto", 64, "checkpoints is not a run folder"},
	{"forcing the user's folder", nil, "train @/data --out @/mine --force", 64, "not a run folder"},
	{"training into the user's folder", nil, "train @/data --out @/mine", 64, "not a run folder"},
	{"forcing a dataset", nil, "train @/data --out @/labels --force", 64, "not a run folder"},
	{"forcing the user's lock", put("free", "lock"), "train @/data --out @/free --force", 64, "lock"},
	{"forcing a run of an older version", func(s *scene) { remove(s, "run", "run.json") },
		"train @/data --out @/run --force", 64, "run.json older"},
	{"forcing a run with notes", put("run", "notes.txt"), "train @/data --out @/run --force", 64, "notes.txt move"},
	{"forcing a run with a model beside", put("run", "checkpoints", "resnet.pt"), "train @/data --out @/run --force", 64, "resnet.pt move"},
	{"forcing a run with notes on predictions", put("run", "predictions", "notes.txt"),
		"train @/data --out @/run --force", 64, "notes.txt"},
	{"a run again", nil, "train @/data --out @/run", 64, "exists --force"},
	{"a run over another one", nil, "train @/data --epochs 9 --out @/run --resume @/free", 66, "no checkpoint"},
	{"from another run over one", func(s *scene) { must(s.t, "train", s.data, "--out", s.path("free", "b"), "--epochs", "2", "--quiet") },
		"train @/data --epochs 9 --out @/free/b --resume @/run", 64, "exists --force"},
	{"forced, weights absent", nil, "train @/data --out @/run --force --init @/none", 66, "none"},
	{"forced, weights of another shape", nil,
		"train @/data --out @/run --force --hidden 5 --init @/run/model.safetensors", 65, "layers.0.weight"},
	{"forced, shard damaged", func(s *scene) { s.cut(s.path("data", "parts", "1", "0.part")) },
		"train @/data --out @/run --force", 65, "0.part"},
	{"forced, more ranks than vertices", nil, "train @/data --out @/run --force --ranks 9 --servers 0", 78, "9 5 vertices"},
	{"forced, no dataset", nil, "train @/mine --out @/run --force", 66, "not a dataset folder"},

	// Datasets and shards.
	{"import over a dataset with notes", put("labels", "notes.txt"), "import --force --from raw @/raw-data @/labels", 64, "notes.txt move"},
	{"import over a dataset with notes on shards", put("data", "parts", "notes.txt"),
		"import --force --from raw @/raw-labels @/data", 64, "notes.txt move"},
	{"import over a dataset with notes among shards", put("data", "parts", "1", "notes.txt"),
		"import --force --from raw @/raw-labels @/data", 64, "notes.txt move"},
	{"import over a run", nil, "import --force --from raw @/raw-data @/run", 64, "not a dataset folder"},
	{"import of what is damaged over a dataset", func(s *scene) { s.cut(s.path("raw-data", "features.bin")) },
		"import --force --from raw @/raw-data @/labels", 65, "features.bin"},
	{"generate over a dataset with notes", put("labels", "notes.txt"),
		"generate --force @/labels --vertices 90 --edges 90", 64, "notes.txt move"},
	{"generate over the user's folder", nil, "generate --force @/mine --vertices 90 --edges 90", 64, "not a dataset folder"},
	{"generate over a link to a dataset", func(s *scene) {
		if err := os.Symlink("labels", s.path("link")); err != nil {
			s.t.Fatal(err)
		}
	}, "generate --force @/link --vertices 90 --edges 90", 64, "not a dataset folder"},
	{"partition over notes", put("data", "parts", "1", "notes.txt"), "partition @/data --parts 1 --method hash", 64, "notes.txt move"},
	{"train that would partition over notes", put("data", "parts", "1-hash-auto-1", "notes.txt"),
		"train @/data --partitioner hash --out @/run --force", 64, "notes.txt move"},
	{"partition for too many", nil, "partition @/data --parts 9", 78, "9 parts"},
	{"download over the user's folder", nil, "download cora @/mine --cache @/free/cache --base-url http://127.0.0.1:1", 64, "exists"},

	// Predictions, reports, pictures, scripts.
	{"predict over the user's ids", put("free", "ids.txt"), "predict @/run @/data --out @/free", 64, "ids.txt not overwritten"},
	{"predict over the user's embeddings", put("run", "predictions", "embeddings.npy"), "predict @/run @/data --embeddings", 64,
		"embeddings.npy not overwritten"},
	{"predict below a file", nil, "predict @/run @/data --out @/mine.txt/p", 74, "mine.txt"},
	{"predict with damaged weights", func(s *scene) { s.cut(s.path("run", "model.safetensors")) },
		"predict @/run @/data --ranks 2", 65, "model.safetensors"},
	{"predict on other data", nil, "predict @/run @/wide --ranks 2", 65, "3 features trained on 2"},
	{"report of what is damaged", func(s *scene) { s.cut(s.path("run", "summary.json")) }, "report @/run", 65, "summary.json"},
	{"report of nothing", nil, "report @/mine", 66, "summary.json"},
	{"status of nothing", nil, "status @/mine", 66, "not a run folder"},
	{"simulation of nothing", nil, "bench simulate @/mine", 66, "summary.json"},
	{"simulation of a damaged timeline", func(s *scene) { s.cut(s.path("trace.json")) },
		"bench simulate @/run --trace @/trace.json", 65, "trace.json"},
	{"picture over a file", nil, "bench breakdown --from @/trace.json --picture-epochs 2,3 --picture @/mine.txt",
		64, "mine.txt not overwritten"},
	{"submit over a script", put("free", "new.sbatch"), "submit @/data --dry-run -- --out @/free/new", 64, "new.sbatch not overwritten"},
	{"submit over a script of partitioning", put("free", "new-partition.sbatch"),
		"submit @/data --partition-job --dry-run -- --out @/free/new", 64, "new-partition.sbatch not overwritten"},
	{"submit over a record", put("free", "new.job"), "submit @/data -- --out @/free/new", 64, "new.job not overwritten"},
	{"submit without Slurm", func(s *scene) { s.t.Setenv("PATH", s.free) }, "submit @/data -- --out @/free/new", 66, "no Slurm"},
	{"launch without mpirun", func(s *scene) { s.t.Setenv("PATH", s.free) }, "launch train @/data --out @/run --force", 66, "mpirun"},
}

func remove(s *scene, path ...string) {
	if err := os.Remove(s.path(path...)); err != nil {
		s.t.Fatal(err)
	}
}

// A refused command has not changed a byte, for any command and any target.
func TestRefusalChangesNothing(t *testing.T) {
	model := gallery(t)
	for _, tc := range refusals {
		t.Run(tc.name, func(t *testing.T) {
			s := &scene{t: t, dir: filepath.Join(t.TempDir(), "g")}
			s.data, s.run, s.free = s.path("data"), s.path("run"), s.path("free")
			if err := os.CopyFS(s.dir, os.DirFS(model.dir)); err != nil {
				t.Fatal(err)
			}
			if tc.harm != nil {
				tc.harm(s)
			}
			before := s.tree()
			r := siafu(strings.Fields(strings.ReplaceAll(tc.args, "@", s.dir))...)
			if r.code != tc.code {
				t.Errorf("exit %d, want %d: %s%s", r.code, tc.code, r.out, r.err)
			}
			for _, word := range strings.Fields(tc.says) {
				if !strings.Contains(r.err, word) {
					t.Errorf("the message lacks %q: %s", word, r.err)
				}
			}
			for _, path := range changes(before, s.tree()) {
				t.Errorf("changed: %s", path)
			}
		})
	}
}

// A folder that another process writes is not touched, and the message names
// the process.
func TestInUse(t *testing.T) {
	data, run := small(t), filepath.Join(t.TempDir(), "run")
	must(t, "train", data, "--epochs", "2", "--out", run, "--quiet")
	lock, err := runfolder.Acquire(run, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	before := treeOf(t, run)
	if r := siafu("train", data, "--out", run, "--force"); r.code != 64 || !strings.Contains(r.err, "has been writing it since") {
		t.Errorf("exit %d %s", r.code, r.err)
	}
	for _, path := range changes(before, treeOf(t, run)) {
		t.Errorf("changed: %s", path)
	}
}
