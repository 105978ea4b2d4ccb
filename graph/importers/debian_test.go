package importers

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// debFixture has every construct that the importer knows: two versions of a
// package, alternatives, versions, architectures, folded fields, virtual and
// unknown names, archive areas, a missing section, a relation to oneself.
const debFixture = `Package: zsh
Version: 5.9-4
Section: shells
Pre-Depends: libc6 (>= 2.34)
Recommends: vim | editor,
 libc6:any (<< 3~)
Description: shell with lots of features
 A long text that is no feature: vim vim vim.

Package: libc6
Version: 2.36-9
Section: libs
Suggests: libc6, glibc-doc [amd64] <!nodoc>
Description: GNU C Library: Shared libraries


Package: vim
Version: 1:9.0
section: contrib/editors
Provides: editor, vi (= 9)
Depends: old-thing
Description-en: Vi IMproved - the C editor, the editor

Package: zsh
Version: 5.9~rc1-4
Section: misc
Depends: vim
Description: an older version

Package: nothing
Version: 1
Enhances: zsh | vim
Description:
`

func debImport(o Options) (*graph.Content, error) {
	return caught(func() *graph.Content { return debian(newResources(input{"import debian", o.Src}), o) })
}

// debRead imports text and fails the test on an error.
func debRead(t *testing.T, src string, stdin string) (*graph.Content, string) {
	t.Helper()
	var log strings.Builder
	o := Options{Src: src, Stdin: strings.NewReader(stdin), Seed: 7, Log: func(f string, args ...any) {
		log.WriteString(fmt.Sprintf(f, args...))
	}}
	c, err := debImport(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, log.String()
}

func TestDebian(t *testing.T) {
	dir := t.TempDir()
	plain, zipped := filepath.Join(dir, "a"), filepath.Join(dir, "a.gz")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(debFixture))
	w.Close()
	if err := os.WriteFile(plain, []byte(debFixture), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(zipped, z.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, src, stdin string }{
		{"file", plain, ""},
		{"gzip file", zipped, ""},
		{"standard input", "-", debFixture},
		{"gzip on standard input", "-", z.String()},
		{"carriage returns", "-", strings.ReplaceAll(debFixture, "\n", "\r\n")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, log := debRead(t, tt.src, tt.stdin)
			checkDebFixture(t, c)
			want := "debian: packages=4 other_versions=1 relations=6 to_virtual=1 to_unknown=2 unknown_names=2split=random " +
				"train=60% val=20% test=20% seed=7"
			if log != want {
				t.Errorf("log is %q, want %q", log, want)
			}
		})
	}
}

// checkDebFixture compares c with debFixture as read by a person.
func checkDebFixture(t *testing.T, c *graph.Content) {
	t.Helper()
	var ids, edges []string
	for v := range int(c.Vertices) {
		ids = append(ids, c.IDs.At(v))
	}
	if want := []string{"libc6", "nothing", "vim", "zsh"}; !slices.Equal(ids, want) {
		t.Fatalf("ids are %q, want %q", ids, want)
	}
	c.Edges.Each(func(u, v uint32) error {
		edges = append(edges, ids[u]+">"+ids[v])
		return nil
	})
	want := []string{"libc6>libc6", "nothing>zsh", "nothing>vim", "zsh>libc6", "zsh>vim", "zsh>libc6"}
	if !slices.Equal(edges, want) || !c.Symmetrise {
		t.Errorf("edges are %q, want %q, symmetrised", edges, want)
	}
	if want := []string{"editors", "libs", "shells"}; !slices.Equal(c.ClassNames, want) || c.Classes != 3 {
		t.Errorf("classes are %q, want %q", c.ClassNames, want)
	}
	if want := []int32{1, -1, 0, 2}; !slices.Equal(c.Labels, want) {
		t.Errorf("labels are %v, want %v", c.Labels, want)
	}
	// By frequency: c is in two descriptions; ties in alphabetical order.
	vocabulary := strings.Fields("c editor features gnu improved libraries library lots of shared shell the vi with")
	rows := []string{"c gnu libraries library shared", "", "c editor improved the vi", "features lots of shell with"}
	for v, row := range rows {
		var words []string
		s := c.Features.Sparse
		for i := s.Offsets[v]; i < s.Offsets[v+1]; i++ {
			words = append(words, vocabulary[s.Cols[i]])
			if s.Vals[i] != 1 {
				t.Errorf("%s: value %v", ids[v], s.Vals[i])
			}
		}
		if got := strings.Join(words, " "); got != row {
			t.Errorf("words of %s are %q, want %q", ids[v], got, row)
		}
	}
	if c.Features.Dim != len(vocabulary) || c.Features.Rows != 4 {
		t.Errorf("features are %d x %d", c.Features.Rows, c.Features.Dim)
	}
	if c.Split[1] != graph.SplitNone || c.Split[0] == graph.SplitNone {
		t.Errorf("split is %v, want all but vertex 1 in a set", c.Split)
	}
}

func TestDebianErrors(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		kind     fault.Kind
		want     string // in the message
	}{
		{"empty", "", fault.Missing, "apt-get update"},
		{"only empty lines", "\n \n\n", fault.Missing, "apt-get update"},
		{"no field", "Package: a\nrubbish here\n", fault.Data, `line 2: "rubbish here" is not`},
		{"blank in field name", "Package: a\nNot a field: b\n", fault.Data, "line 2"},
		{"binary", "\x00\x01\x02\xff\n", fault.Data, `line 1: "\x00\x01\x02\xff"`},
		{"fold first", "\n folded\n", fault.Data, "line 2"},
		{"no name", "Package: a\n\nVersion: 1\nSection: b\n", fault.Data, "line 3: the stanza"},
		{"bad name", "Version: 1\nPackage: a b\n", fault.Data, `line 2: Package "a b"`},
		{"empty name", "Package:\n", fault.Data, `line 1: Package ""`},
		{"twice", "Package: a\nSection: b\nsection: c\n", fault.Data, "line 3: field \"section\" occurs twice"},
		{"bad relation", "Package: a\nDepends: b, c d, e\n", fault.Data, `line 2: "c d" in field depends`},
		{"bad folded relation", "Package: a\nDepends: b,\n c,\n d (>= 1\n", fault.Data, `line 4: "d (>= 1" in field depends`},
		{"bad alternative of another's text", "Package: a\nDepends: b (>= 1)\n | (>= 1)\n", fault.Data, "line 3"},
		{"bad provides", "Package: a\nProvides: b (1)\n", fault.Data, `"b (1)" in field provides`},
		{"long value is cut", "Package: " + strings.Repeat("é", 500) + "\n", fault.Data, "…"},
		{"line too long", "Package: a\nX: " + strings.Repeat("x", debLineLimit) + "\n", fault.Data, "line 2: longer than"},
		{"cut gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", fault.Data, "unexpected EOF"},
		{"invalid gzip data", "\x1f\x8bnot gzip, but long enough", fault.Data, "invalid gzip data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := debImport(Options{Src: "-", Stdin: strings.NewReader(tt.in), Log: t.Logf})
			if fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v (kind %d), want kind %d and %q", err, fault.KindOf(err), tt.kind, tt.want)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		_, err := debImport(Options{Src: filepath.Join(t.TempDir(), "absent"), Log: t.Logf})
		if fault.KindOf(err) != fault.Missing {
			t.Errorf("error is %v, want Missing", err)
		}
	})
}

func TestDebRelations(t *testing.T) {
	for _, tt := range []struct{ in, want, bad string }{
		{"a", "a", ""},
		{"", "", ""},
		{"a,b , c|d", "a b c d", ""},
		{"a, , b,", "a b", ""},
		{"python3:any (>= 3.9~), g++-12 (= 1:2-3+b1)", "python3 g++-12", ""},
		{"a(>=1)|b:amd64(<2)", "a b", ""},
		{"a [amd64 !i386] <!nocheck> <stage1 !cross>", "a", ""},
		{"a:any\n (>= 1)", "a", ""},
		{"a |", "a", "a |"},
		{"a | | b", "a", "a | | b"},
		{"a (1)", "", "a (1)"},
		{"a (>= )", "", "a (>= )"},
		{"a (<=> 1)", "", "a (<=> 1)"},
		{"a:", "", "a:"},
		{"x, a [], y", "x", "a []"},
		{"-a", "", "-a"},
		{"ä", "", "ä"},
		{"a (>= 1) b", "", "a (>= 1) b"},
	} {
		t.Run(tt.in, func(t *testing.T) {
			list, bad, _ := debParseRelations(nil, 1, tt.in)
			var names []string
			for _, r := range list {
				names = append(names, r.name)
			}
			if got := strings.Join(names, " "); got != tt.want || bad != tt.bad {
				t.Errorf("got %q and bad %q, want %q and %q", got, bad, tt.want, tt.bad)
			}
		})
	}
}

// TestDebVersionCompare has the versions of each row in ascending order.
func TestDebVersionCompare(t *testing.T) {
	for _, row := range []string{
		"~~ ~~a ~ 0 a", // deb-version(7)
		"1.0~beta1~svn1245 1.0~beta1 1.0 1.0-1 1.0-1+b1 1.0-1.1 1.0a 1.0.1",
		"9 10 1:1 1:2 2:0",
		"1-2 1-10 1a-1 1+-1",
		"99999999999999999999998 99999999999999999999999",
	} {
		versions := strings.Fields(row)
		for i, a := range versions {
			for j, b := range versions {
				got, want := debVersionCompare(a, b), i-j
				if got > 0 != (want > 0) || got < 0 != (want < 0) {
					t.Errorf("%s against %s is %d, want the sign of %d", a, b, got, want)
				}
			}
		}
	}
	for _, equal := range [][2]string{{"1.0", "0:1.0"}, {"1.01", "1.1"}, {"1-0", "1"}} {
		if c := debVersionCompare(equal[0], equal[1]); c != 0 {
			t.Errorf("%s against %s is %d, want 0", equal[0], equal[1], c)
		}
	}
}

// debPause is the time between attempts to read the machine's archive.
const debPause = 10 * time.Second

// debMachine returns the archive of the machine, as printed by apt-cache and as imported.
// While packages are installed or lists renewed, apt-cache may fail or print an invalid list,
// so there is a second attempt.
func debMachine(t *testing.T) (string, *graph.Content) {
	t.Helper()
	out, c, err := debTry(t)
	if err != nil {
		t.Logf("%v; trying again in %v", err, debPause)
		time.Sleep(debPause)
		out, c, err = debTry(t)
	}
	switch {
	case fault.KindOf(err) == fault.Data:
		t.Fatal(err)
	case err != nil:
		t.Skipf("no apt lists on this machine: %v", err)
	}
	return out, c
}

func debTry(t *testing.T) (string, *graph.Content, error) {
	out, err := exec.Command("apt-cache", "dumpavail").Output()
	if err != nil {
		return "", nil, err
	}
	c, err := debImport(Options{Stdin: bytes.NewReader(out), Src: "-", Seed: 7, Log: t.Logf})
	return string(out), c, err
}

// TestDebianThisMachine imports the archive of the machine and compares with counts from the
// lines alone.
func TestDebianThisMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some 50 MB")
	}
	out, c := debMachine(t)
	packages, sections := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "Package: "); ok {
			packages[name] = true
		}
		if s, ok := strings.CutPrefix(line, "Section: "); ok {
			sections[s[strings.LastIndex(s, "/")+1:]] = true
		}
	}
	if int(c.Vertices) != len(packages) || c.Classes != len(sections) {
		t.Errorf("%d vertices in %d classes, want %d in %d", c.Vertices, c.Classes, len(packages), len(sections))
	}
	counts := make([]int, c.Features.Dim) // packages that use each word
	for _, col := range c.Features.Sparse.Cols {
		counts[col]++
	}
	slices.Reverse(counts)
	if !slices.IsSorted(counts) || len(counts) != wordColumns {
		t.Errorf("%d words, not in the order of their frequency", len(counts))
	}
}

// FuzzDebian: any input gives a fault or a dataset with consistent arrays.
func FuzzDebian(f *testing.F) {
	f.Add([]byte(debFixture))
	f.Add([]byte("Package: a\nDepends: a:any (>= 1) [x] <y>, b | c\n"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var c *graph.Content
		var err error
		decodertest.Heap(t, int64(len(in)), func() {
			c, err = debImport(Options{Src: "-", Stdin: bytes.NewReader(in), Log: func(string, ...any) {}})
		})
		if err != nil {
			if fault.KindOf(err) == fault.Runtime {
				t.Fatalf("no fault: %v", err)
			}
			return
		}
		n := int(c.Vertices)
		if len(c.Labels) != n || len(c.Split) != n || c.Features.Rows != n || len(c.IDs.Offsets) != n+1 || c.Classes != len(c.ClassNames) {
			t.Fatalf("arrays of other lengths than %d vertices", n)
		}
		if err := c.Edges.Each(func(u, v uint32) error {
			if int(u) >= n || int(v) >= n {
				t.Fatalf("edge %d-%d of %d vertices", u, v, n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if s := c.Features.Sparse; s != nil {
			for v := range n {
				row := s.Cols[s.Offsets[v]:s.Offsets[v+1]]
				if !slices.IsSorted(row) || len(slices.Compact(slices.Clone(row))) != len(row) {
					t.Fatalf("row %d is %v", v, row)
				}
			}
		}
	})
}
