package cli

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ogbWriter writes a graph in the layouts of ogbl-collab, ogbl-ppa, ogbl-citation2 and
// ogbl-vessel, as the benchmark saves them, and what they hold out as text.
const ogbWriter = `
import gzip, os, sys
try:
    import numpy as np, torch
except ImportError:
    sys.exit(3)
rng, n = np.random.default_rng(1), 40
pairs = np.array([(u, v) for u in range(n) for v in range(u)])
pairs = pairs[rng.permutation(len(pairs))]
train, val, test, not_val, not_test = pairs[:120], pairs[120:140], pairs[140:170], pairs[170:290], pairs[290:410]
x = rng.normal(size=(n, 5)).astype(np.float32)
def text(path, rows, head=""):
    with open(path, "w") as f:
        f.write(head + "".join(",".join(str(c) for c in np.atleast_1d(r)) + "\n" for r in rows))
def folder(name, split):
    os.makedirs(f"{name}/raw"), os.makedirs(f"{name}/split/{split}")
def raw(name, file, rows):
    with gzip.open(f"{name}/raw/{file}.csv.gz", "wt") as f:
        f.write("".join(",".join(str(c) for c in np.atleast_1d(r)) + "\n" for r in rows))
for name, split in [("collab", "time"), ("ppa", "throughput"), ("citation2", "time")]:
    folder(name, split)
    for file, rows in [("edge", train), ("node-feat", x), ("num-node-list", [n]), ("num-edge-list", [len(train)])]:
        raw(name, file, rows)
raw("collab", "edge_weight", rng.integers(1, 4, len(train))), raw("collab", "edge_year", [2000] * len(train))
def save(name, split, as_is):
    torch.save({"edge": as_is(train), "weight": as_is(np.ones(len(train)))}, f"{name}/split/{split}/train.pt")
    torch.save({"edge": as_is(val), "edge_neg": as_is(not_val)}, f"{name}/split/{split}/valid.pt")
    torch.save({"edge": as_is(test), "edge_neg": as_is(not_test)}, f"{name}/split/{split}/test.pt")
save("collab", "time", torch.tensor), save("ppa", "throughput", lambda a: a)
for k, p in [("train", train), ("valid", val), ("test", test)]:
    d = {"source_node": p[:, 0].copy(), "target_node": p[:, 1].copy()}
    if k != "train":
        d["target_node_neg"] = rng.integers(0, n, (len(p), 7))
        text(f"{k}-each.csv", d["target_node_neg"])
    torch.save({key: torch.tensor(a) for key, a in d.items()}, f"citation2/split/time/{k}.pt")
folder("vessel", "random")
both = np.concatenate([train, train[:, ::-1]]).T
np.savez("vessel/raw/data.npz", num_nodes_list=[n], num_edges_list=[both.shape[1]], edge_index=both, node_feat=x)
torch.save({"train": {"edge": train}, "valid": {"edge": val, "edge_neg": not_val}, "test": {"edge": test, "edge_neg": not_test}}, "vessel/split/random/split_dict.pt")
for k, p in [("valid", val), ("test", test), ("valid-not", not_val), ("test-not", not_test)]:
    text(f"{k}.csv", p, "src,dst\n")
`

// Folders in the layouts of the Open Graph Benchmark's link datasets are imported, held out by
// the command that the import names, and trained on, with the scores of the same pairs as text.
func TestOGBLinks(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/usr/bin/python3", "-c", ogbWriter)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() == 3 {
			t.Skip("there is no PyTorch")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	siafu := func(args ...string) string {
		t.Helper()
		cmd := process(nil, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	next, scores := regexp.MustCompile(`next: siafu (holdout .*)`), regexp.MustCompile(`metrics split=test .*`)
	trained := func(data string) string {
		t.Helper()
		line := scores.FindString(siafu("train", data, "--epochs", "5", "--out", filepath.Join(dir, "run-"+data)))
		if !strings.Contains(line, "roc_auc=") {
			t.Fatalf("%s has no scores", data)
		}
		return line
	}
	lists := []string{"--val", "valid.csv", "--test", "test.csv", "--keep-held"}
	not := append([]string{"--val-not", "valid-not.csv", "--test-not", "test-not.csv"}, lists...)
	each := append([]string{"--val-each", "valid-each.csv", "--test-each", "test-each.csv"}, lists...)
	for name, c := range map[string]struct {
		text  []string
		score string
		edges string
	}{
		"collab": {not, "hits@50=", "weighted=true"}, "ppa": {not, "hits@100=", "edges=240"},
		"citation2": {each, "mrr=", "edges=240"}, "vessel": {not, "roc_auc=", "edges=240"},
	} {
		said := siafu("import", "--from", "ogb", "--symmetrise", name, name+"-data")
		command := next.FindStringSubmatch(said)
		if command == nil || !strings.Contains(said, c.edges) {
			t.Errorf("%s: %s", name, said)
			continue
		}
		siafu(strings.Fields(command[1])...)
		siafu(append([]string{"holdout", name + "-data", name + "-text"}, c.text...)...)
		got, want := trained(name+"-data-links"), trained(name+"-text")
		if got != want || !strings.Contains(got, c.score) || !strings.Contains(got, "links=30 ") {
			t.Errorf("%s: %s, of text %s", name, got, want)
		}
	}
}
