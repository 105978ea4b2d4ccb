package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// script returns a command of the folder scripts that finds these programs first.
func script(t *testing.T, programs map[string]string, name string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	bin := t.TempDir()
	for program, text := range programs {
		hosttest.Program(t, filepath.Join(bin, program), "#!/bin/bash\n"+text)
	}
	cmd := exec.Command("scripts/"+name, args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "BIN="+bin, "SIAFU_APT_PAUSE=0")
	return cmd
}

// Only a lock is waited for, as long as it is held and not for ever.
func TestAptGetWaits(t *testing.T) {
	const locked = "echo 'E: Could not get lock /x. It is held by process 7 (y)' >&2; exit 100\n"
	for _, tc := range []struct {
		name, fake string
		code       int
		says       []string
	}{
		{"free", `echo "did $*"`, 0, []string{"did install a b"}},
		{"held", `[ -e $BIN/held ] && { echo "did $*"; exit; }; touch $BIN/held; ` + locked, 0,
			[]string{"waiting for another program: Could not get lock /x. It is held by process 7 (y)\n", "did install a b"}},
		{"held for ever", locked, 100, []string{"E: Could not get lock"}},
		{"another fault", "echo called; echo 'E: Unable to locate package a' >&2; exit 100", 100,
			[]string{"called\n", "E: Unable to locate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := script(t, map[string]string{"apt-get": tc.fake}, "apt-get", "install", "a", "b")
			if tc.name == "held for ever" {
				cmd.Env = append(cmd.Env, "SIAFU_APT_WAIT=1")
			}
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != tc.code {
				t.Errorf("exit %d, want %d", got, tc.code)
			}
			for _, want := range tc.says {
				if strings.Count(string(out), want) != 1 {
					t.Errorf("%q is not said once in\n%s", want, out)
				}
			}
		})
	}
}

// The lock of the package lists is one that apt-get itself does not wait for.
func TestAptGetWaitsForLists(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("no apt-get on this machine")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "partial"), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.FcntlFlock(lock.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	free := time.AfterFunc(1500*time.Millisecond, func() {
		_ = syscall.FcntlFlock(lock.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_UNLCK})
	})
	defer free.Stop()
	out, err := script(t, nil, "apt-get", "-o", "Dir::State::lists="+dir, "-o", "Dir::Etc::sourcelist=/dev/null", "-o",
		"Dir::Etc::sourceparts=/dev/null", "update").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "waiting for another program: Could not get lock "+dir+"/lock") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A list of packages that is not whole is read again, once, and never imported.
func TestImportPackages(t *testing.T) {
	const again = "[ -e $BIN/again ] && { echo Package: a; exit; }; touch $BIN/again; "
	for _, tc := range []struct {
		name, fake string
		code       int
		imported   string // the lists that were taken
	}{
		{"whole", "echo Package: a", 0, "Package: a\n"},
		{"half, then whole", again + "echo Package: half; exit 100", 0, "Package: a\n"},
		{"garbage, then whole", again + "echo garbage", 0, "Package: a\n"},
		{"half", "echo Package: half; exit 100", 100, ""},
		{"garbage", "echo garbage", 65, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dst := filepath.Join(t.TempDir(), "dst")
			cmd := script(t, map[string]string{
				"apt-cache": tc.fake,
				"siafu": `[ "$1 $2 $3 $4" = "import --from debian -" ] || exit 64; list=$(grep Package) || ` +
					`exit 65; echo "$list" >>"$5"`,
			}, "import-packages", "siafu", dst)
			out, _ := cmd.CombinedOutput()
			text, _ := os.ReadFile(dst)
			if got := cmd.ProcessState.ExitCode(); got != tc.code || string(text) != tc.imported {
				t.Errorf("exit %d, want %d; imported %q, want %q\n%s", got, tc.code, text, tc.imported, out)
			}
		})
	}
}

// The Makefile calls apt-get through its script alone, and no pipe makes a
// dataset.
func TestMakefileWaits(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		direct := strings.Contains(line, "apt-get install") && !strings.Contains(line, "scripts/apt-get") &&
			!strings.Contains(line, `line="`)
		if direct || strings.Contains(line, "| ./siafu") {
			t.Errorf("%s", line)
		}
	}
}
