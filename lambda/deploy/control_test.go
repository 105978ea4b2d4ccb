package deploy

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"siafu/internal/testkit/deploytest"
)

const region = "eu-central-1"

// ours is the role that siafu creates for the function.
const ours = "siafu-eu-central-1-f"

// executableOf writes a file that is an executable of an architecture by its header.
func executableOf(t *testing.T, arch, rest string) string {
	t.Helper()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machines[arch]), Version: uint32(elf.EV_CURRENT), Ehsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	b.WriteString(rest)
	path := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(path, b.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// options returns the options of a typical function.
func options(t *testing.T) Options {
	return Options{Target: Target{"f"}, Arch: "amd64", File: executableOf(t, "amd64", "one"), Memory: 512,
		Timeout: time.Minute, CreateRole: true}
}

// client returns a real client of an account, with the shortest waits.
func client(f *deploytest.Fake, out *bytes.Buffer, dry bool) *control {
	c := newControl(aws.Config{
		BaseEndpoint: &f.URL, Region: region, Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
		},
	}, out, dry)
	c.waits = waits{step: time.Millisecond, ready: 10 * time.Second, role: 10 * time.Second, undo: 10 * time.Second}
	return c
}

// result has the result of a command: its error, output and calls.
type result struct {
	err   error
	out   string
	calls []string
}

// changing returns the changing calls.
func (r result) changing() []string {
	return slices.DeleteFunc(slices.Clone(r.calls), func(c string) bool {
		_, operation, _ := strings.Cut(c, ":")
		return strings.HasPrefix(operation, "Get") || strings.HasPrefix(operation, "List")
	})
}

// command runs one command of the account.
func command(f *deploytest.Fake, dry bool, do func(*control) error) result {
	var out bytes.Buffer
	err := do(client(f, &out, dry))
	return result{err, out.String(), f.Taken()}
}

func deployed(ctx context.Context, t *testing.T, f *deploytest.Fake, o Options) result {
	t.Helper()
	packed, err := Pack(o.File, o.Arch)
	if err != nil {
		t.Fatal(err)
	}
	return command(f, o.DryRun, func(c *control) error { return c.deploy(ctx, o, packed) })
}

func removed(t *testing.T, f *deploytest.Fake, dry bool) result {
	return command(f, dry, func(c *control) error { return c.remove(t.Context(), "f") })
}

// expect compares the calls of a command, which must succeed.
func expect(t *testing.T, r result, calls ...string) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.out)
	}
	if d := cmp.Diff(calls, r.calls); d != "" {
		t.Fatalf("calls (-want +got):\n%s\n%s", d, r.out)
	}
}

// printed returns the calls that a dry run prints.
func printed(r result) []string {
	var list []string
	for line := range strings.Lines(r.out) {
		if rest, ok := strings.CutPrefix(line, "lambda would call "); ok {
			action, _, _ := strings.Cut(rest, " ")
			list = append(list, action)
		}
	}
	return list
}
