package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"siafu/bench/commands"
	"siafu/cli/commandline"
	"siafu/ranks/world/mpi"
)

// result is the result of a call of the program.
type result struct {
	code     int
	out, err string
}

// siafu calls the program in this process, for bench the program siafu-bench.
func siafu(args ...string) result {
	var out, errOut bytes.Buffer
	do := dispatch
	if len(args) > 0 && args[0] == "bench" {
		do = commands.Run
	}
	code := commandline.Run(args, strings.NewReader(""), &out, &errOut, do)
	return result{code, out.String(), errOut.String()}
}

// must calls the program and expects success.
func must(t testing.TB, args ...string) string {
	t.Helper()
	r := siafu(args...)
	if r.code != 0 {
		t.Fatalf("siafu %s: exit %d\n%s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// small generates a dataset of 200 vertices.
func small(t testing.TB, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	must(t, append([]string{"generate", dir, "--vertices", "200", "--edges", "1200", "--features", "6", "--classes", "3"}, args...)...)
	return dir
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}} {
		r := siafu(args...)
		if r.code != 0 {
			t.Errorf("siafu %v: exit %d %s", args, r.code, r.err)
		}
		for _, command := range []string{"import", "download", "generate", "info", "partition", "plan", "train", "predict", "launch",
			"submit", "status", "report", "bench", "doctor", "version"} {
			if !strings.Contains(r.out, "\n  "+command) {
				t.Errorf("siafu %v does not list %s:\n%s", args, command, r.out)
			}
		}
	}
	if out := must(t, "train", commandline.HelpAll); !strings.Contains(out, "on=first:") || !strings.Contains(out, "Model") {
		t.Errorf("help train:\n%s", out)
	}
	// tests are built without version control
	want := `^siafu \S+ go\S+ .*commit=unknown kernels=\S*go usable=\S*go mpi=(none|"\S.*" library=/\S+/libmpi\S*\.so\.\d+)\n$`
	if out := must(t, "version"); !regexp.MustCompile(want).MatchString(out) || strings.Contains(out, "mpi=none") == mpi.Available() {
		t.Errorf("version: %q", out)
	}
	if out := must(t, "doctor"); !strings.Contains(out, "world kind=in-process available=true") ||
		!strings.Contains(out, "world kind=mpi available=") {
		t.Errorf("doctor: %q", out)
	}
	var found map[string][]map[string]any
	if err := json.Unmarshal([]byte(must(t, "doctor", "--json")), &found); err != nil || len(found["world"]) != 2 ||
		found["host"][0]["cpus"] == nil {
		t.Errorf("doctor --json: %v %v", found, err)
	}
}

// A whole session: generate, look, partition, train from a configuration,
// predict, report.
func TestSession(t *testing.T) {
	data, dir := small(t), t.TempDir()
	if out := must(t, "info", data); !strings.Contains(out, "vertices") || !strings.Contains(out, "verified") {
		t.Errorf("info: %s", out)
	}
	if out := must(t, "partition", data, "--parts", "3", "--method", "hash"); !strings.Contains(out, "edge cut") {
		t.Errorf("partition: %s", out)
	}
	if out := must(t, "plan", data, "--all", "--ranks", "4", "--partitioner", "hash,ldg", "--codec", "none,s2", "--hidden",
		"9"); !strings.Contains(out, "hash (made)") ||
		strings.Contains(out, "fennel") || strings.Contains(out, "zstd") || !strings.Contains(out, "bottleneck") {
		t.Errorf("plan: %s", out)
	}
	out := filepath.Join(dir, "run")
	text := must(t, "train", data, "--ranks", "4", "--epochs", "20", "--out", out)
	for _, want := range []string{"plan order=", "epoch=20/20", "test_at_best_val=", "model=" + filepath.Join(out, "model.safetensors")} {
		if !strings.Contains(text, want) {
			t.Errorf("train does not print %q:\n%s", want, text)
		}
	}
	if text := must(t, "predict", out, data, "--ranks", "2", "--embeddings"); !strings.Contains(text, "test_acc=") {
		t.Errorf("predict: %s", text)
	}
	for _, name := range []string{"predictions.npy", "probabilities.npy", "embeddings.npy", "ids.txt", "predictions.csv"} {
		if _, err := os.Stat(filepath.Join(out, "predictions", name)); err != nil {
			t.Error(err)
		}
	}
	if text := must(t, "report", out, "--columns", "all"); !strings.Contains(text, "gcn    2       16") ||
		!strings.Contains(text, "generated") {
		t.Errorf("report: %s", text)
	}
}

// The old names of --monitor and --recompute-ghosts work as flags, in a file and in the environment.
func TestOldNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, []byte("patience-on = \"both\"\nghost-features = \"kept\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SIAFU_PATIENCE_ON", "loss")
	for want, args := range map[string][]string{
		"penalised": {"train", file, "data", "--patience-on", "penalised"},
		"both":      {"train", file, "data"},
		"loss":      {"train", "data"},
		"macro_f1":  {"train", file, "data", "--monitor=f1_macro"},
	} {
		if c, err := parseTrain(args); err != nil || c.Config.Monitor != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	t.Setenv("SIAFU_GHOST_FEATURES", "sent")
	for want, args := range map[string][]string{
		"all":      {"train", file, "data", "--ghost-features", "all"},
		"layers:1": {"train", file, "data"},
		"none":     {"train", "data"},
	} {
		if c, err := parseTrain(args); err != nil || c.Config.RecomputeGhosts != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

// Flags override the file, the file overrides the environment, that overrides
// the defaults; the run folder says what was used.
func TestPrecedence(t *testing.T) {
	data, dir := small(t), t.TempDir()
	config := filepath.Join(dir, "c.toml")
	if err := os.WriteFile(config, []byte("hidden = 5\nlr = 0.5\nquiet = true\nepochs = 200\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SIAFU_HIDDEN", "7")
	t.Setenv("SIAFU_WEIGHT_DECAY", "0.25")
	t.Setenv("SIAFU_LR", "0.125")
	t.Setenv("SIAFU_DROPUOT", "0.1")
	t.Setenv("SIAFU_CPU", "") // of tests, as the next one
	t.Setenv("SIAFU_CASES_SEED", "1")
	out := filepath.Join(dir, "run")
	r := siafu("train", config, data, "--lr", "0.01", "--epochs", "2", "--out", out)
	if r.code != 0 {
		t.Fatal(r.err)
	}
	if !strings.Contains(r.err, "SIAFU_DROPUOT matches no flag") || strings.Count(r.err, "matches no flag") != 1 {
		t.Errorf("warnings: %q", r.err)
	}
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "accuracy ") ||
		!strings.HasPrefix(lines[1], "wrote model=") {
		t.Errorf("the quiet run prints %q", r.out)
	}
	text, err := os.ReadFile(filepath.Join(out, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"hidden = 5\n",          // file over environment
		"lr = 0.01\n",           // flag, equal to the default, over file and environment
		"weight-decay = 0.25\n", // environment over default
		"dropout = 0.5\n",       // default
		"epochs = 2\n", "quiet = true\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("config.toml lacks %q:\n%s", want, text)
		}
	}
}

// A run folder's config.toml runs again and gives the same model.
func TestConfigRunsAgain(t *testing.T) {
	data, dir := small(t), t.TempDir()
	first, second := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	must(t, "train", data, "--ranks", "3", "--epochs", "5", "--hidden", "9", "--out", first)
	must(t, "train", filepath.Join(first, "config.toml"), data, "--out", second)
	a, errA := os.ReadFile(filepath.Join(first, "model.safetensors"))
	b, errB := os.ReadFile(filepath.Join(second, "model.safetensors"))
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the models differ: %v %v", errA, errB)
	}
}

// Commands run in one process under launch, whether they know of ranks or not.
func TestLaunchInProcess(t *testing.T) {
	data := small(t)
	for want, line := range map[string][]string{
		"launcher none":       {"doctor"},
		"siafu 0":             {"version"},
		" ranks=2 servers=0 ": {"train", data, "--epochs", "2", "--out", filepath.Join(t.TempDir(), "run")},
	} {
		out, err := process(nil, append([]string{"launch", "--in-process", "-n", "2"}, line...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v\n%s", line, err, out)
		}
	}
}
