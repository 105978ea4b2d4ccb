package deploy

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/functiontest"
)

// Pack accepts only a function of the given architecture, and gives the same bytes each time.
func TestPack(t *testing.T) {
	for arch, other := range map[string]string{"amd64": "arm64", "arm64": "amd64"} {
		path := functiontest.BuildFor(t, arch)
		first, err := Pack(path, arch)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		second, err := Pack(path, arch)
		if err != nil || first.SHA256 != second.SHA256 || !bytes.Equal(first.Zip, second.Zip) {
			t.Errorf("%s: a second zip is another one, %v", arch, err)
		}
		z, err := zip.NewReader(bytes.NewReader(first.Zip), int64(len(first.Zip)))
		if err != nil || len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode() != 0o755 ||
			z.File[0].Modified.Year() != 1980 {
			t.Fatalf("%s: the zip holds %v, %v", arch, z.File, err)
		}
		r, err := z.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		want, err2 := os.ReadFile(path)
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: bootstrap is another file, %v %v", arch, err, err2)
		}
		if _, err := Pack(path, other); fault.ExitCode(err) != 65 || !strings.Contains(err.Error(), "make function LAMBDA_ARCH="+other) {
			t.Errorf("%s for %s: %v", arch, other, err)
		}
	}
}

// Pack rejects files that are not functions.
func TestPackRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, exit := range map[string]int{text: 65, t.TempDir(): 65, filepath.Join(t.TempDir(), "none"): 66, "/bin/sh": 65} {
		if _, err := Pack(path, "amd64"); fault.ExitCode(err) != exit {
			t.Errorf("%s: exit %d, %v", path, fault.ExitCode(err), err)
		}
	}
}

// Invalid flags are rejected, by name.
func TestOptions(t *testing.T) {
	good := Options{Target: Target{"f"}, Memory: 128, Timeout: time.Minute}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*Options){
		"--name":                          func(o *Options) { o.Name = "arn:aws:lambda:us-east-1:123456789012:function:f" },
		"--memory=127":                    func(o *Options) { o.Memory = 127 },
		"--memory=10241":                  func(o *Options) { o.Memory = 10241 },
		"--timeout=1.5s":                  func(o *Options) { o.Timeout = 1500 * time.Millisecond },
		"--timeout=16m0s":                 func(o *Options) { o.Timeout = 16 * time.Minute },
		"--concurrency=-1":                func(o *Options) { o.Concurrency = -1 },
		`--role="r"`:                      func(o *Options) { o.Role = "r" },
		"and --create-role":               func(o *Options) { o.Role, o.CreateRole = "arn:aws:iam::123456789012:role/r", true },
		"1 --subnets and 0":               func(o *Options) { o.Subnets = []string{"subnet-1"} },
		"--security-groups: \"subnet-1\"": func(o *Options) { o.Subnets, o.SecurityGroups = []string{"subnet-1"}, []string{"subnet-1"} },
	} {
		o := good
		change(&o)
		if err := o.check(); fault.ExitCode(err) != 64 || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// ARNs have the region's partition, and the length of a role's name is bounded.
func TestNames(t *testing.T) {
	for region, want := range map[string]string{"us-east-1": "aws", "us-gov-west-1": "aws-us-gov", "cn-north-1": "aws-cn", "": "aws"} {
		if got := partition(region); got != want {
			t.Errorf("%s: %s", region, got)
		}
	}
	if name, err := roleName("us-east-1", strings.Repeat("f", 48)); err != nil || len(name) != 64 {
		t.Error(name, err)
	}
	if _, err := roleName("us-east-1", strings.Repeat("f", 49)); fault.ExitCode(err) != 64 {
		t.Error(err)
	}
}
