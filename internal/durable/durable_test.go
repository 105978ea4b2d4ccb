package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// recorder is a disk that writes down what happens, in paths below dir, and
// fails at the call with the given number.
type recorder struct {
	dir    string
	calls  []string
	failAt int
}

var id = regexp.MustCompile(`\.tmp-[a-z2-7]{16}`)

func (r *recorder) note(call string, paths ...string) error {
	for _, p := range paths {
		rel, _ := filepath.Rel(r.dir, p)
		call += " " + id.ReplaceAllString(rel, ".tmp")
	}
	r.calls = append(r.calls, call)
	if len(r.calls) == r.failAt {
		return unix.ENOSPC
	}
	return nil
}

func (r *recorder) sync(f *os.File) error {
	return errors.Join(r.note("sync", f.Name()), kernel{}.sync(f))
}

func (r *recorder) mkdir(path string) error {
	if err := r.note("mkdir", path); err != nil {
		return err
	}
	return kernel{}.mkdir(path)
}

func (r *recorder) rename(from, to string) error {
	if err := r.note("rename", from, to); err != nil {
		return err
	}
	return kernel{}.rename(from, to)
}

func (r *recorder) exchange(a, b string) error {
	if err := r.note("exchange", a, b); err != nil {
		return err
	}
	return kernel{}.exchange(a, b)
}

// noExchange is a file system, as NFS, that cannot exchange two names.
type noExchange struct{ *recorder }

func (n noExchange) exchange(a, b string) error {
	return errors.Join(n.note("exchange", a, b), unix.EINVAL)
}

const op = "test"

// way is one of this package's ways to bring something to the name dir/target.
type way struct {
	name  string
	run   func(d disk, dir string) error
	calls []string // in order
	named int      // the call from which on target is new
	spare int      // the call that may fail, 0 for none
	stays int      // the call whose failure leaves the older folder aside
}

func text(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }

// folder makes and fills a folder and puts it in the place of dir/target.
func folder(d disk, dir string) error {
	f, err := NewFolder(op, filepath.Join(dir, "target"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := WriteFile(op, filepath.Join(f.Path, "file"), []byte("new"), Perm); err != nil {
		return err
	}
	return replace(d, op, f.Path, f.final, f.Path+".old")
}

func waysOf(kind string) []way {
	if kind == "file" {
		return []way{{
			"write", func(d disk, dir string) error { return write(d, op, filepath.Join(dir, "target"), Perm, text) },
			[]string{"sync target.tmp", "rename target.tmp target", "sync ."}, 3, 0, 0,
		}, {
			"rename", func(d disk, dir string) error {
				part := filepath.Join(dir, "part")
				defer os.Remove(part) // of a try that fails
				return errors.Join(os.WriteFile(part, []byte("new"), Perm), rename(d, op, part, filepath.Join(dir, "target")))
			},
			[]string{"sync part", "rename part target", "sync ."}, 3, 0, 0,
		}}
	}
	return []way{{
		"replace", folder,
		[]string{"sync .target.tmp", "exchange .target.tmp target", "sync ."}, 3, 2, 0,
	}, {
		"replace without exchange", func(d disk, dir string) error { return folder(noExchange{d.(*recorder)}, dir) },
		[]string{"sync .target.tmp", "exchange .target.tmp target", "rename target .target.tmp.old",
			"rename .target.tmp target", "sync ."}, 5, 2, 5,
	}}
}

// old creates an older file or folder at dir/target.
func old(t *testing.T, kind, dir string) {
	t.Helper()
	path := filepath.Join(dir, "target")
	if kind == "folder" {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(path, "file")
	}
	if err := os.WriteFile(path, []byte("old"), Perm); err != nil {
		t.Fatal(err)
	}
}

func content(kind, dir string) string {
	path := filepath.Join(dir, "target")
	if kind == "folder" {
		path = filepath.Join(path, "file")
	}
	b, _ := os.ReadFile(path)
	return string(b)
}

// Written data is synced, then renamed, and then the folder is synced. A failure of any step
// is a fault, and leaves the complete old or new content and nothing else, except an older
// folder that was moved, until the new one is known to be durable.
func TestOrder(t *testing.T) {
	for _, kind := range []string{"file", "folder"} {
		for _, w := range waysOf(kind) {
			for failAt := range len(w.calls) + 1 { // 0: never
				t.Run(fmt.Sprintf("%s/%d", w.name, failAt), func(t *testing.T) {
					dir := t.TempDir()
					old(t, kind, dir)
					r := &recorder{dir: dir, failAt: failAt}
					err := w.run(r, dir)
					if (err == nil) != (failAt == 0 || failAt == w.spare) {
						t.Errorf("error is %v", err)
					}
					if err != nil && (fault.KindOf(err) != fault.IO || strings.Contains(err.Error(), ".tmp-")) {
						t.Errorf("fault is %v", err)
					}
					if failAt == 0 && !slices.Equal(r.calls, w.calls) {
						t.Errorf("calls are\n%q, want\n%q", r.calls, w.calls)
					}
					want := "old"
					if err == nil || failAt >= w.named {
						want = "new"
					}
					if got := content(kind, dir); got != want {
						t.Errorf("it holds %q, want %q", got, want)
					}
					entries, _ := os.ReadDir(dir)
					if len(entries) > 1 && failAt != w.stays {
						t.Errorf("beside it are %v", entries)
					}
				})
			}
		}
	}
}

// A folder that is made is a new name in the one above it, up to the first that
// was there.
func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	r := &recorder{dir: dir}
	if err := mkdirAll(r, filepath.Join(dir, "a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	want := []string{"mkdir a", "sync .", "mkdir a/b", "sync a", "mkdir a/b/c", "sync a/b"}
	if !slices.Equal(r.calls, want) {
		t.Errorf("calls are\n%q, want\n%q", r.calls, want)
	}
	r.calls = nil
	if err := mkdirAll(r, filepath.Join(dir, "a", "b")); err != nil || r.calls != nil {
		t.Errorf("what is there is made again: %q %v", r.calls, err)
	}
	file := filepath.Join(dir, "file")
	if err := WriteFile(op, file, nil, Perm); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(op, filepath.Join(file, "below")); fault.KindOf(err) != fault.IO || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
}

// A file that fails while it is filled is not there, and the error is the one
// that filled it.
func TestFillFails(t *testing.T) {
	dir := t.TempDir()
	for _, failure := range []error{fault.New(fault.Data, "read", "other", "no number"), unix.EIO} {
		err := Write(op, filepath.Join(dir, "target"), func(w io.Writer) error {
			return errors.Join(text(w), failure)
		})
		if !errors.Is(err, failure) || errors.As(failure, new(*fault.Error)) != (fault.KindOf(err) == fault.Data) {
			t.Errorf("error is %v", err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left are %v", entries)
	}
}

// Permissions respect the umask.
func TestPermissions(t *testing.T) {
	defer unix.Umask(unix.Umask(0o027))
	dir := filepath.Join(t.TempDir(), "made")
	for name, make := range map[string]func(path string) error{
		"0640": func(path string) error { return Write(op, path, text) },
		"0750": func(path string) error { return WriteFile(op, path, nil, 0o777) },
		"0700": func(path string) error { return WriteFile(op, path, nil, 0o700) },
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(MkdirAll(op, dir), make(path)); err != nil {
			t.Fatal(err)
		}
		mode(t, path, name)
	}
	f, err := NewFolder(op, filepath.Join(dir, "folder"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	mode(t, filepath.Join(dir, "folder"), "0750")
	mode(t, dir, "0750")
}

func mode(t *testing.T, path, want string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != want {
		t.Errorf("%s has permissions %s, want %s", path, got, want)
	}
}

// A file is opened in place only if it is a regular file of that name.
func TestOpenInPlace(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	for range 2 {
		f, err := OpenInPlace("test", file, os.O_APPEND)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, "x")
		f.Close()
	}
	if err := errors.Join(os.Symlink(file, link), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, pipe} {
		if f, err := OpenInPlace("test", path, os.O_TRUNC); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), path) {
			t.Errorf("%v %v", f, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "xx" {
		t.Errorf("%q %v", text, err)
	}
}
