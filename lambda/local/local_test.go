package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	runtime "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/lambda"
)

// TestMain runs the function if a sandbox has started this executable.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		runtime.Start(standIn)
	}
	if os.Getenv(hostVariable) != "" {
		host()
	}
	os.Exit(m.Run())
}

// job is a request to the stand-in.
type job struct {
	Sleep  time.Duration
	Do     string
	N      int    // of what is to be done
	Target string // a file, or an address

	Corrupt bool // the service demands a corrupt answer
}

// standIn executes a request, and returns the number of its process.
func standIn(w job) (any, error) {
	time.Sleep(w.Sleep)
	switch w.Do {
	case "exit":
		fmt.Fprintln(os.Stderr, "good-bye")
		os.Exit(3)
	case "panic":
		panic("out of order")
	case "fail":
		return nil, errors.New("not this one")
	case "large":
		return strings.Repeat("x", lambda.MaxPayload), nil
	case "burn":
		return burn(time.Duration(w.N) * time.Millisecond), nil
	case "hoard":
		return len(hoard(w.N)), nil
	case "fetch":
		return fetch(w.Target, w.N)
	case "note":
		return note(w.Target)
	case "environment":
		return os.Environ(), nil
	case "corrupt":
		return w.Corrupt, nil
	}
	return os.Getpid(), nil
}

// bench is a service with a real client.
type bench struct {
	*Service
	client *service.Client
}

func newBench(t *testing.T, o Options) bench {
	t.Helper()
	o.Function, o.Name = os.Args[0], "f"
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return bench{s, service.New(service.Options{
		BaseEndpoint: aws.String(s.URL()), Region: Region, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(s.Key(), "any", ""),
	})}
}

func (b bench) invoke(w job) (*service.InvokeOutput, error) {
	payload, _ := json.Marshal(w)
	ctx, cancel := context.WithTimeout(context.Background(), hosttest.Patience)
	defer cancel()
	return b.client.Invoke(ctx, &service.InvokeInput{FunctionName: aws.String("f"), Payload: payload, LogType: types.LogTypeTail})
}

// pid returns the process that runs a job.
func (b bench) pid(t *testing.T, w job) int {
	t.Helper()
	out, err := b.invoke(w)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := json.Unmarshal(out.Payload, &pid); err != nil || out.FunctionError != nil {
		t.Fatalf("answer %q: %v", out.Payload, err)
	}
	return pid
}

// failed returns how a job fails.
func (b bench) failed(t *testing.T, w job) lambda.Failed {
	t.Helper()
	out, err := b.invoke(w)
	if err != nil {
		t.Fatal(err)
	}
	var f lambda.Failed
	if out.FunctionError == nil || json.Unmarshal(out.Payload, &f) != nil {
		t.Fatalf("%v: answer %q, and no failure", w, out.Payload)
	}
	return f
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(hosttest.Patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A sandbox is reused after its invocation. Concurrent invocations have a sandbox each, and
// invocations above the limit are throttled.
func TestSandboxes(t *testing.T) {
	b := newBench(t, Options{Concurrency: 3})
	first := b.pid(t, job{})
	for range 5 {
		if pid := b.pid(t, job{}); pid != first {
			t.Errorf("process %d has it, and %d was free", pid, first)
		}
	}
	var all sync.Map
	var sandboxes sync.WaitGroup
	for range 3 {
		sandboxes.Go(func() { all.Store(b.pid(t, job{Sleep: time.Second}), true) })
	}
	eventually(t, "three invocations do not run at a time", func() bool { return b.Stats().Invocations == 9 })
	_, err := b.invoke(job{})
	if throttled := (*types.TooManyRequestsException)(nil); !errors.As(err, &throttled) {
		t.Errorf("a fourth invocation ends with %v", err)
	}
	sandboxes.Wait()
	count := 0
	all.Range(func(any, any) bool { count++; return true })
	if s := b.Stats(); count != 3 || s.Started != 3 || s.Throttled != 1 || s.Failed != 0 {
		t.Errorf("%d processes, %+v", count, s)
	}
}

// A function that fails, exits, times out or returns too much fails its invocation, and the next
// one succeeds.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		job   job
		kind  string
		says  string
		stays bool // the process does
	}{
		{"error", job{Do: "fail"}, "errorString", "not this one", true},
		{"panic", job{Do: "panic"}, "string", "out of order", false},
		{"exit", job{Do: "exit"}, "Runtime.ExitError", "exit status 3 (output: \"good-bye", false},
		{"slow", job{Sleep: time.Minute}, "Sandbox.Timedout", "killed", false},
		{"large", job{Do: "large"}, "Function.ResponseSizeTooLarge", "6291456", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Options{Concurrency: 1, Timeout: 2 * time.Second})
			before := b.pid(t, job{})
			if f := b.failed(t, c.job); f.Type != c.kind || !strings.Contains(f.Message, c.says) {
				t.Errorf("it fails with %+v, want %s: %s", f, c.kind, c.says)
			}
			if after := b.pid(t, job{}); (after == before) != c.stays {
				t.Errorf("process %d does the next one, before it was %d", after, before)
			}
			if s := b.Stats(); s.Failed != 1 || s.Invocations != 3 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A function that exits before it asks for work fails the invocation, and is not restarted for
// it.
func TestFunctionThatDoesNotBegin(t *testing.T) {
	s, err := Start(Options{Function: "/bin/false", Name: "f", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	inv := &invocation{id: "i", done: make(chan answer, 1)}
	a, err := s.run(inv)
	if err != nil || !a.failed || !strings.Contains(string(a.payload), "exit status 1") || s.Stats().Started != 1 {
		t.Errorf("%q %v %+v", a.payload, err, s.Stats())
	}
}

func TestInjectedFaults(t *testing.T) {
	b := newBench(t, Options{Faults: Faults{Crash: 1}})
	if f := b.failed(t, job{}); f.Type != "Runtime.ExitError" || !strings.Contains(f.Message, "killed") {
		t.Errorf("crash: %+v", f)
	}
	b = newBench(t, Options{Faults: Faults{Lose: 1}, Timeout: 100 * time.Millisecond})
	if f := b.failed(t, job{}); f.Type != "Sandbox.Timedout" || b.Stats().Started != 0 {
		t.Errorf("lost: %+v %+v", f, b.Stats())
	}
	b = newBench(t, Options{Faults: Faults{Late: 1, Delay: 300 * time.Millisecond}})
	began := time.Now()
	if b.pid(t, job{}); time.Since(began) < 300*time.Millisecond {
		t.Error("a late answer is not late")
	}
}

// Close ends all processes and current invocations. A sandbox without its service exits.
func TestClose(t *testing.T) {
	b := newBench(t, Options{Concurrency: 2})
	idle := b.pid(t, job{})
	ended := make(chan error)
	go func() {
		out, err := b.invoke(job{Sleep: time.Hour})
		if err == nil && out.FunctionError == nil {
			err = errors.New("it has been done")
		} else {
			err = nil
		}
		ended <- err
	}()
	eventually(t, "the second invocation does not begin", func() bool { return b.Stats().Invocations == 2 })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if alive(idle) || len(b.sandboxes) > 0 {
		t.Errorf("process %d, or one of %d, has not ended", idle, len(b.sandboxes))
	}
	if err := b.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}

	left := newBench(t, Options{})
	pid := left.pid(t, job{})
	_ = left.server.Close()
	eventually(t, "a sandbox does not end with the Runtime API", func() bool { return !alive(pid) })
}

// A sandbox inherits no environment variables.
func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "a secret")
	b := newBench(t, Options{})
	out, err := b.invoke(job{Do: "environment"})
	if err != nil || !bytes.Contains(out.Payload, []byte("AWS_LAMBDA_RUNTIME_API")) || bytes.Contains(out.Payload, []byte("secret")) {
		t.Errorf("%q %v", out.Payload, err)
	}
}

// A request without the key, for another function, too large or malformed gets an error in AWS's
// format, and changes nothing.
func TestHostileRequests(t *testing.T) {
	b := newBench(t, Options{Concurrency: 2})
	b.pid(t, job{})
	if !strings.HasPrefix(b.URL(), "http://127.0.0.1:") {
		t.Errorf("it listens on %s", b.URL())
	}
	var token string
	for token = range b.sandboxes {
	}
	const path = "/2015-03-31/functions/f/invocations"
	signed := "AWS4-HMAC-SHA256 Credential=" + b.Key() + "/20260101/local/lambda/aws4_request"
	for _, c := range []struct {
		name, method, path, key, kind, body string
		status                              int
	}{
		{"no key", "POST", path, "", "", "{}", 403},
		{"another key", "POST", path, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101", "", "{}", 403},
		{"half a key", "POST", path, signed[:len("AWS4-HMAC-SHA256 Credential=")+5], "", "{}", 403},
		{"another function", "POST", "/2015-03-31/functions/g/invocations", signed, "", "{}", 404},
		{"an event", "POST", path, signed, "Event", "{}", 400},
		{"no JSON", "POST", path, signed, "", "\x00\x01{", 400},
		{"nothing", "POST", path, signed, "", "", 400},
		{"too much", "POST", path, signed, "", `"` + strings.Repeat("x", lambda.MaxPayload) + `"`, 413},
		{"another operation", "GET", "/2015-03-31/functions/", signed, "", "", 404},
		{"no sandbox", "GET", "/nobody/2018-06-01/runtime/invocation/next", "", "", "", 403},
		{"no sandbox's answer", "POST", "/nobody/2018-06-01/runtime/invocation/1/response", "", "", "{}", 403},
		{"without a token", "GET", "/2018-06-01/runtime/invocation/next", "", "", "", 404},
		{"an unknown invocation's answer", "POST", "/" + token + "/2018-06-01/runtime/invocation/1/response", "", "", "{}", 400},
		{"an unknown invocation's error", "POST", "/" + token + "/2018-06-01/runtime/invocation/1/error", "", "", "{}", 400},
		{"an endless answer", "POST", "/" + token + "/2018-06-01/runtime/invocation/1/response", "", "",
			strings.Repeat("x", lambda.MaxPayload+1), 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := b.Stats()
			r, err := http.NewRequest(c.method, b.URL()+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", c.key)
			r.Header.Set("X-Amz-Invocation-Type", c.kind)
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			if body, _ := io.ReadAll(got.Body); got.StatusCode != c.status || !json.Valid(body) ||
				got.Header.Get("X-Amzn-ErrorType") == "" {
				t.Errorf("status %d %q, want %d", got.StatusCode, body, c.status)
			}
			after := b.Stats()
			if before.Refused++; after != before {
				t.Errorf("%+v, want %+v", after, before)
			}
		})
	}
	if b.pid(t, job{}); b.running != 0 {
		t.Errorf("%d invocations run", b.running)
	}
}

// A payload of the maximum size is accepted.
func TestLargestPayload(t *testing.T) {
	b := newBench(t, Options{})
	body := fmt.Sprintf(`{"Do":"%s"}`, strings.Repeat("x", lambda.MaxPayload-len(`{"Do":""}`)))
	out, err := b.client.Invoke(context.Background(), &service.InvokeInput{FunctionName: aws.String("f"), Payload: []byte(body)})
	if len(body) != lambda.MaxPayload || err != nil || out.FunctionError != nil {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}

// A missing function is reported before any invocation.
func TestFunctionIsMissing(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "bootstrap"), t.TempDir(), "service.go"} {
		s, err := Start(Options{Function: path, Name: "f"})
		if err == nil {
			_ = s.Close()
		}
		if fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "make function") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
