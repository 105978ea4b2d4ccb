//go:build lambda

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/lambda/function/functiontest"
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
	must(t, at("lambda", "--tensor", "lambda", "--lambda", "local", "--lambda-function", function, "--bridge-address", "127.0.0.1:0,localhost:0")...)
	want, err := os.ReadFile(filepath.Join(dir, "cpu", "model.safetensors"))
	got, err2 := os.ReadFile(filepath.Join(dir, "lambda", "model.safetensors"))
	if err != nil || err2 != nil || !bytes.Equal(got, want) {
		t.Errorf("the model is another one: %v %v", err, err2)
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
		{64, "--bridge-address", []string{"--tensor", "lambda", "--lambda", "aws"}},
		{64, "--bridge-address=here", []string{"--tensor", "lambda", "--lambda", "local", "--bridge-address", "here"}},
		{78, "192.0.2.1:0", []string{"--tensor", "lambda", "--lambda", "local", "--bridge-address", "192.0.2.1:0"}},
		{78, "LISTEN,ADVERTISED", []string{"--tensor", "lambda", "--lambda", "local", "--bridge-address", ":0"}},
		{66, "make function", []string{"--tensor", "lambda", "--lambda", "local"}},
		{66, "nowhere", []string{"--tensor", "lambda", "--lambda", "local", "--lambda-function", filepath.Join(dir, "nowhere")}},
	} {
		r := siafu(at("refused", c.flags...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d %s", c.flags, r.code, r.err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "refused", "*")); err != nil || len(left) > 0 {
			t.Errorf("%v: it leaves %v", c.flags, left)
		}
	}
	if r := siafu("plan", data, "--tensor", "lambda", "--lambda", "local"); r.code != 64 || !strings.Contains(r.err, "--tensor") {
		t.Errorf("plan: exit %d %s", r.code, r.err)
	}
}
