package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"siafu/internal/testkit/deploytest"
	"siafu/internal/testkit/functiontest"
)

// The command line trains in functions to the same file; it refuses flags that do not go
// together, and says which function is missing, before anything is written.
func TestLambda(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	must(t, "generate", data, "--vertices", "300", "--edges", "2000", "--features", "8", "--classes", "3")
	at := func(name string, flags ...string) []string {
		return append([]string{"train", data, "--epochs", "3", "--intervals", "3", "--quiet", "--out", filepath.Join(dir, name)}, flags...)
	}
	function := functiontest.Build(t)
	must(t, at("cpu")...)
	must(t, at("lambda", "--tensor", "lambda", "--lambda", "local", "--lambda", "function="+function, "--lambda",
		"address=127.0.0.1:0,localhost:0")...)
	must(t, at("weak", "--tensor", "lambda", "--lambda", "local", "--lambda", "function="+function, "--lambda",
		"address=127.0.0.1:0,localhost:0", "--lambda", "limits=aws", "--lambda", "faults=seed=1,crash=0.1,throttle=0.1")...)
	for _, name := range []string{"lambda", "weak"} {
		want, err := os.ReadFile(filepath.Join(dir, "cpu", "model.safetensors"))
		got, err2 := os.ReadFile(filepath.Join(dir, name, "model.safetensors"))
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("the model of %s is another one: %v %v", name, err, err2)
		}
	}
	summary, err := os.ReadFile(filepath.Join(dir, "lambda", "summary.json"))
	if err != nil || !bytes.Contains(summary, []byte(`"tensor": "lambda"`)) || bytes.Contains(summary, []byte(`"lambda_invocations": 0`)) {
		t.Errorf("summary.json: %s %v", summary, err)
	}
	for _, c := range []struct {
		code  int
		says  string
		flags []string
	}{
		{64, "--lambda", []string{"--tensor", "lambda"}},
		{64, "--tensor lambda", []string{"--lambda", "local"}},
		{64, "openblas", []string{"--tensor", "lambda", "--lambda", "local", "--kernel", "openblas"}},
		{64, `no fault "crush"`, []string{"--tensor", "lambda", "--lambda", "local", "--lambda", "faults=crush=0.1"}},
		{64, "add up to 1.2", []string{"--tensor", "lambda", "--lambda", "local", "--lambda", "faults=crash=0.6,lose=0.6"}},
		{64, "--lambda local", []string{"--tensor", "lambda", "--lambda", "aws", "--lambda", "limits=memory"}},
		{64, "--lambda memory=", []string{"--tensor", "lambda", "--lambda", "local", "--lambda", "memory=100"}},
		{64, "--lambda address=", []string{"--tensor", "lambda", "--lambda", "aws"}},
		{64, "--lambda address=here", []string{"--tensor", "lambda", "--lambda", "local:address=here"}},
		{78, "203.0.113.1:0", []string{"--tensor", "lambda", "--lambda", "local", "--lambda", "address=203.0.113.1:0"}},
		{64, "host:port", []string{"--tensor", "lambda", "--lambda", "local", "--lambda", "address=127.0.0.1:0,[::1"}},
		{66, "make function", []string{"--tensor", "lambda", "--lambda", "local"}},
		{66, "nowhere", []string{"--tensor", "lambda", "--lambda", "local", "--lambda", "function=" + filepath.Join(dir, "nowhere")}},
	} {
		r := siafu(at("refused", c.flags...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d %s", c.flags, r.code, r.err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "refused", "*")); err != nil || len(left) > 0 {
			t.Errorf("%v: it leaves %v", c.flags, left)
		}
	}
	if r := siafu("plan", data, "--all", "--tensor", "lambda", "--lambda", "local"); r.code != 0 ||
		!strings.Contains(r.out, "Tensor work in functions") {
		t.Errorf("plan: exit %d %s", r.code, r.err)
	}
	if r := siafu("plan", data, "--tensor", "lambda", "--lambda", "local", "--mode", "async"); r.code != 64 ||
		!strings.Contains(r.err, "--mode") {
		t.Errorf("plan of bounded asynchrony: exit %d %s", r.code, r.err)
	}
}

// account returns a stand-in for AWS, which the SDK finds by the environment.
func account(t *testing.T) *deploytest.Fake {
	f := deploytest.New(t)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": f.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "the secret",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return f
}

// The command line deploys, says what is there, and removes it; it names the account's
// region and credentials where they are missing.
func TestLambdaDeployment(t *testing.T) {
	f := account(t)
	function := functiontest.BuildFor(t, "arm64")
	deploy := []string{"lambda", "deploy", "--name", "f", "--arch", "arm64", "--file", function, "--create-role", "--concurrency", "3"}
	if out := must(t, append(deploy, "--dry-run")...); len(f.Functions) > 0 || !strings.Contains(out, "would call lambda:CreateFunction") ||
		strings.Contains(out, "the secret") {
		t.Errorf("a dry run: %s", out)
	}
	if r := siafu("lambda", "status", "--name", "f"); r.code != 66 || !strings.Contains(r.err, "no function f in eu-central-1") {
		t.Errorf("nothing is there: exit %d %s", r.code, r.err)
	}
	if out := must(t, deploy...); !strings.Contains(out, "an idle function costs only the storage") {
		t.Error(out)
	}
	if out := must(t, deploy...); !strings.Contains(out, "nothing to change") {
		t.Error(out)
	}
	if out := must(t, "lambda", "status", "--name", "f", "--file", function); !strings.Contains(out, "arch=arm64") ||
		!strings.Contains(out, "same=true") || !strings.Contains(out, "concurrency=3") {
		t.Error(out)
	}
	must(t, "lambda", "remove", "--name", "f", "--dry-run")
	if f.Functions["f"] == nil {
		t.Error("a dry run has removed the function")
	}
	must(t, "lambda", "remove", "--name", "f")
	if len(f.Functions)+len(f.Roles) > 0 {
		t.Errorf("%d functions and %d roles are left", len(f.Functions), len(f.Roles))
	}
	if r := siafu(append(deploy, "--memory", "64")...); r.code != 64 || !strings.Contains(r.err, "--memory=64") {
		t.Errorf("exit %d %s", r.code, r.err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if r := siafu("lambda", "status"); r.code != 78 || !strings.Contains(r.err, "no AWS credentials") {
		t.Errorf("exit %d %s", r.code, r.err)
	}
	t.Setenv("AWS_REGION", "")
	if r := siafu("lambda", "status"); r.code != 78 || !strings.Contains(r.err, "AWS_REGION") {
		t.Errorf("exit %d %s", r.code, r.err)
	}
}

// SIGINT ends a deployment that waits, and what it has made is removed.
func TestLambdaDeploymentInterrupted(t *testing.T) {
	f := account(t)
	f.Looks = 1 << 30
	f.After = func(action string) {
		if action == "lambda:CreateFunction" {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
	}
	r := siafu("lambda", "deploy", "--file", functiontest.BuildFor(t, "amd64"), "--create-role")
	if r.code != 75 || !strings.Contains(r.err, "interrupted") || !strings.Contains(r.out, "removes the created resources") ||
		len(f.Functions)+len(f.Roles) > 0 {
		t.Errorf("exit %d %s%s; %d functions and %d roles are left", r.code, r.out, r.err, len(f.Functions), len(f.Roles))
	}
}
