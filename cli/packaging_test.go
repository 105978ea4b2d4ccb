package cli

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks"
)

// need skips a test if a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("no %s on this machine", p)
		}
	}
}

// output runs a command, with variables added to the environment, and returns what it prints.
func output(t *testing.T, environ []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Recipes name the version of this tree and a Go that builds it, and call targets of the Makefile.
func TestRecipes(t *testing.T) {
	goMod, makefile := read(t, "go.mod"), read(t, "Makefile")
	series := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(goMod)[1]
	deb := "siafu_" + ranks.Version + "_amd64.deb"
	for name, needed := range map[string][]string{
		"packaging/spack/packages/siafu/package.py": {`version("` + ranks.Version + `")`, `"go@` + series + `:"`},
		"packaging/easybuild/siafu-" + ranks.Version + "-gompi-2025b.eb": {
			"version = '" + ranks.Version + "'", "('Go', '" + series + "."},
		"packaging/kubernetes.yaml": {"REGISTRY/siafu:" + ranks.Version, deb},
		"packaging/image":           {deb},
	} {
		text := read(t, name)
		for _, n := range needed {
			if !strings.Contains(text, n) {
				t.Errorf("%s does not have %s", name, n)
			}
		}
		for _, m := range regexp.MustCompile(`make\("([a-z]+)"`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no %s", name, m[1])
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The module adds the program and its manual, and refuses a folder without siafu.
func TestModulefile(t *testing.T) {
	need(t, "bash", "tclsh")
	modules := "/usr/share/modules/init/bash"
	if _, err := os.Stat(modules); err != nil {
		t.Skip("no Environment Modules on this machine")
	}
	dir := t.TempDir()
	for _, sub := range []string{"right/bin", "right/share/man", "modules/siafu"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(hosttest.Go(t, "siafu", "siafu", ""), filepath.Join(dir, "right/bin/siafu")); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"right", "wrong"} {
		text := strings.Replace(read(t, "packaging/modulefile"), "set root /opt/siafu", "set root "+filepath.Join(dir, root), 1)
		if err := os.WriteFile(filepath.Join(dir, "modules/siafu", root), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	load := "source " + modules + "; module use " + dir + "/modules; module load siafu/"
	out := output(t, nil, "bash", "-c", load+"right && siafu version && echo $MANPATH")
	if !strings.HasPrefix(out, "siafu "+ranks.Version) || !strings.Contains(out, dir+"/right/share/man") {
		t.Errorf("right root: %s", out)
	}
	out = output(t, nil, "bash", "-c", load+"wrong || echo refused")
	if !strings.Contains(out, "Set root") || !strings.Contains(out, "refused") {
		t.Errorf("wrong root: %s", out)
	}
}

// document has the fields of a bill of materials that the test checks.
type document struct {
	SPDXVersion string
	Packages    []struct{ SPDXID, Name, VersionInfo, LicenseConcluded string }
	Files       []struct{ SPDXID string }
	Relations   []struct{ SPDXElementID, RelatedSPDXElement string } `json:"relationships"`
}

// The bill of materials has each module of the program with its version and a licence, and refers only to its
// own elements. The licences come with their texts.
func TestBillOfMaterials(t *testing.T) {
	need(t, "bash", "awk", "go")
	program := hosttest.Go(t, "siafu", "siafu", "")
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal([]byte(output(t, nil, "scripts/sbom", "spdx", "siafu-test", program)), &doc); err != nil {
		t.Fatal(err)
	}
	licences, ids := map[string]string{}, map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range doc.Packages {
		if ids[p.SPDXID] || !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.SPDXID) {
			t.Errorf("identifier %q", p.SPDXID)
		}
		licences[p.Name+" "+p.VersionInfo], ids[p.SPDXID] = p.LicenseConcluded, true
	}
	for _, f := range doc.Files {
		ids[f.SPDXID] = true
	}
	for _, r := range doc.Relations {
		if !ids[r.SPDXElementID] || !ids[r.RelatedSPDXElement] {
			t.Errorf("unknown element in %v", r)
		}
	}
	texts := output(t, nil, "scripts/sbom", "texts", program)
	for _, dep := range info.Deps {
		if l := licences[dep.Path+" "+dep.Version]; !regexp.MustCompile(`^[A-Z]`).MatchString(l) {
			t.Errorf("%s %s has the licence %q", dep.Path, dep.Version, l)
		}
		if !strings.Contains(texts, "======== "+dep.Path+" "+dep.Version+": ") {
			t.Errorf("no text of the licence of %s", dep.Path)
		}
	}
	if err := exec.Command("scripts/sbom", "spdx", "siafu-test", "/bin/sh").Run(); err == nil {
		t.Error("a bill of materials of a program that Go has not built")
	}
	if doc.SPDXVersion != "SPDX-2.3" || len(licences) != len(info.Deps)+2 || len(doc.Relations) != len(licences)+1 {
		t.Errorf("%s with %d packages and %d relations for %d modules", doc.SPDXVersion, len(licences), len(doc.Relations), len(info.Deps))
	}
}

// The same tree at any path makes the same bytes, the packaged programs run, and ranks in containers of the
// image make the model of ranks without containers.
func TestDist(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("takes minutes: make test-long")
	}
	var sums []string
	var tree string
	for range 2 {
		tree = filepath.Join(t.TempDir(), "tree")
		if out, err := exec.Command("git", "clone", "-q", ".", tree).CombinedOutput(); err != nil {
			t.Skipf("no clone of this tree: %v %s", err, out)
		}
		output(t, []string{"CGO_CFLAGS=", "CGO_LDFLAGS="}, "make", "-C", tree, "dist")
		sums = append(sums, read(t, filepath.Join(tree, "build/dist/SHA256SUMS")))
	}
	if sums[0] != sums[1] {
		t.Errorf("the same tree made\n%sand\n%s", sums[0], sums[1])
	}
	unpacked := t.TempDir()
	archives, _ := filepath.Glob(filepath.Join(tree, "build/dist/*-linux-amd64*.tar.gz"))
	for _, a := range archives {
		output(t, nil, "tar", "-C", unpacked, "-xzf", a)
	}
	folder := func(variant string) string {
		return filepath.Join(unpacked, "siafu-"+ranks.Version+"-linux-"+variant)
	}
	if out := output(t, nil, folder("amd64")+"/siafu", "version"); !strings.Contains(out, " mpi=none") {
		t.Errorf("without MPI: %s", out)
	}
	if out := output(t, nil, folder("amd64")+"/siafu", "doctor"); !strings.Contains(out, "lib/siafu/bootstrap available=true") {
		t.Errorf("no function: %s", out)
	}
	t.Run("MPICH's ABI", func(t *testing.T) { testABI(t, folder("amd64-mpich")) })
	t.Run("image", func(t *testing.T) {
		testImage(t, filepath.Join(tree, "build/dist/siafu_"+ranks.Version+"_amd64.deb"), folder("amd64-openmpi")+"/siafu")
	})
}

// The loader chooses the library with the name of MPICH's ABI.
func testABI(t *testing.T, folder string) {
	library := "/usr/lib/x86_64-linux-gnu/libmpich.so.12"
	for _, path := range []string{library, folder} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no MPICH on this machine: %v", err)
		}
	}
	for range 2 {
		site := t.TempDir()
		if err := os.Symlink(library, filepath.Join(site, "libmpi.so.12")); err != nil {
			t.Fatal(err)
		}
		out := output(t, []string{"LD_LIBRARY_PATH=" + site}, folder+"/siafu", "version")
		if !strings.Contains(out, ` mpi="MPICH `) || !strings.Contains(out, " library="+site+"/libmpi.so.12\n") {
			t.Errorf("%s", out)
		}
	}
}

func testImage(t *testing.T, deb, siafu string) {
	need(t, "mmdebstrap", "bwrap", "mpirun")
	dir := t.TempDir()
	if _, err := os.Stat(deb); err != nil {
		t.Skipf("no package with Open MPI: %v", err)
	}
	image, root, data := filepath.Join(dir, "image.tar"), filepath.Join(dir, "root"), filepath.Join(dir, "data")
	output(t, nil, "packaging/image", deb, image)
	output(t, nil, "tar", "-C", dir, "-xf", image)
	var index, manifest struct{ Manifests, Layers []struct{ Digest string } }
	blob := func(digest string) string {
		return filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:"))
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, "index.json"))), &index); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(read(t, blob(index.Manifests[0].Digest))), &manifest); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, nil, "tar", "-C", root, "--exclude=./dev/*", "-xzf", blob(manifest.Layers[0].Digest))
	output(t, nil, siafu, "generate", data, "--vertices", "2000", "--edges", "20000", "--features", "16", "--classes", "4")
	var models [][]byte
	for name, container := range map[string]string{"host": "", "container": "bwrap --bind " + root +
		" / --dev-bind /dev /dev --proc /proc --ro-bind /sys /sys --bind /tmp /tmp --bind " + dir + " " + dir} {
		run := filepath.Join(dir, name)
		args := []string{"launch", "-n", "2", "train", data, "--epochs", "5", "--out", run}
		if container != "" {
			args = append(args[:3], append([]string{"--container", container}, args[3:]...)...)
		}
		if out := output(t, []string{"TMPDIR=/tmp"}, siafu, args...); !strings.Contains(out, "ranks=2") {
			t.Errorf("%s: not two ranks:\n%s", name, out)
		}
		models = append(models, []byte(read(t, filepath.Join(run, "model.safetensors"))))
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("the model of ranks in containers has other bytes")
	}
}
