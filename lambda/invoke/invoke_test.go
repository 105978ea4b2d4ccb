package invoke_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/endpoint"
	"siafu/lambda/function"
	"siafu/lambda/invoke"
)

// message returns a network and a task on the given number of vertices.
func message(t testing.TB, vertices int) (lambda.Network, []byte) {
	t.Helper()
	return messageOf(t, vertices, 5)
}

// messageOf returns message with the number of an attempt.
func messageOf(t testing.TB, vertices, attempt int) (lambda.Network, []byte) {
	t.Helper()
	s := model.Spec{Kind: "mlp", Dims: []int{8, 3}, Seed: 1}
	s.Choose(model.Load{}, model.Choices{Order: "apply-first", CacheInput: "off"})
	net, ops, a := model.New(s, false), kernels.NewTeam(1), mapped.NewArena()
	t.Cleanup(func() { ops.Close(); a.Free() })
	ids := make([]uint32, vertices)
	in := model.Place(ops, a, graph.Features{Rows: vertices, Dim: 8, Dense: make([]float32, vertices*8)}, ids, ids)
	store := model.NewStore(net, in, model.InStep, ops, a)
	work := task.Task{
		Name: task.Name{Interval: 2, Attempt: attempt, Stage: model.Emit}, Do: []model.Do{{Stage: model.Emit}},
		Frame: store.Frame(0, vertices, ops, kernels.Mat{}),
	}
	return lambda.Network{Spec: s, Kernel: "go"}, work.Encode(nil, ops)
}

// answering returns a real client of a service that gives this answer, and the number of calls.
func answering(t *testing.T, answer http.HandlerFunc) (*service.Client, *atomic.Int64) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return service.New(service.Options{
		BaseEndpoint: aws.String(s.URL), Region: "r", Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
	}), &n
}

func newTransport(t *testing.T, c invoke.Client, n lambda.Network, atOnce int, timeout time.Duration) *invoke.Transport {
	t.Helper()
	e, err := endpoint.Start(endpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := invoke.New(invoke.Options{Client: c, Function: "f", Network: n, AtOnce: atOnce, Timeout: timeout, Endpoint: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = transport.Close(), e.Close() })
	return transport
}

// The billed duration of an invocation is that of its log.
func TestSpent(t *testing.T) {
	transport, _, m, _ := pulling(t, endpoint.Options{}, func(f *function.Function, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Log-Type") == "Tail" {
			w.Header().Set("X-Amz-Log-Result",
				base64.StdEncoding.EncodeToString([]byte("REPORT RequestId: a\tDuration: 3.50 ms\tInit Duration: 20.00 ms\n")))
		}
		handle(f, w, r)
	})
	if err := transport.Send(m); err != nil {
		t.Fatal(err)
	}
	for late := time.After(hosttest.Patience); ; {
		select {
		case a := <-transport.Answers():
			if s := a.Spent; s == nil && a.Failed == nil {
				continue // the result
			} else if s == nil || s.Guessed || s.Interval != 2 || s.Attempt != 5 || s.Init+s.Work != 23500*time.Microsecond {
				t.Errorf("it has taken %+v: %+v", s, a.Failed)
			}
			return
		case <-late:
			t.Fatal("nothing comes")
		}
	}
}

// A failed invocation is reported with the name of its task and whether another attempt may
// help. It is not repeated here.
func TestFailures(t *testing.T) {
	status := func(code int, kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-ErrorType", kind)
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"Message":"because"}`)
		}
	}
	says := func(failed bool, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if failed {
				w.Header().Set("X-Amz-Function-Error", "Unhandled")
			}
			fmt.Fprint(w, text)
		}
	}
	hangUp := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	net, m := message(t, 10)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		final  bool
		says   string
	}{
		{"throttled", status(429, "TooManyRequestsException"), false, "because"},
		{"service", status(500, "ServiceException"), false, "because"},
		{"no function", status(404, "ResourceNotFoundException"), true, "because"},
		{"no right", status(403, "AccessDeniedException"), true, "because"},
		{"crash", says(true, `{"errorType":"Runtime.ExitError","errorMessage":"it ended"}`), false, "Runtime.ExitError: it ended"},
		{"nonsense of a crash", says(true, `it ended`), false, "Unhandled: it ended"},
		{"no reply", says(false, `[1`), false, "JSON"},
		{"refused", says(false, `{"Refused":"too large"}`), true, "too large"},
		{"connection", hangUp, false, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, n := answering(t, c.answer)
			transport := newTransport(t, client, net, 1, time.Minute)
			if err := transport.Send(m); err != nil {
				t.Fatal(err)
			}
			select {
			case a := <-transport.Answers():
				f := a.Failed
				if f == nil {
					t.Fatal("there is a result")
				}
				if f.Interval != 2 || f.Attempt != 5 || f.Final != c.final || !strings.Contains(f.Err.Error(), c.says) {
					t.Errorf("%v: final %t, %v", f.Name, f.Final, f.Err)
				}
				if turnedDown := c.name == "throttled" || strings.HasPrefix(c.name, "no f") ||
					c.name == "no right"; (a.Spent == nil) != turnedDown || !turnedDown && !a.Spent.Guessed {
					t.Errorf("it has taken %+v", a.Spent)
				}
			case <-time.After(hosttest.Patience):
				t.Error("nothing comes")
			}
			if n.Load() != 1 {
				t.Errorf("%d requests", n.Load())
			}
		})
	}
}

// The number of concurrent invocations is limited, and Close abandons them, even if nobody reads
// their results.
func TestBoundAndClose(t *testing.T) {
	net, _ := message(t, 10)
	var now, most atomic.Int64
	client := slow(func(ctx context.Context) {
		for n := now.Add(1); n > most.Load(); {
			most.CompareAndSwap(most.Load(), n)
		}
		<-ctx.Done()
		now.Add(-1)
	})
	transport := newTransport(t, client, net, 3, time.Minute)
	for k := range 20 {
		_, m := messageOf(t, 10, k)
		if err := transport.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(hosttest.Patience); now.Load() < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	_ = transport.Close()
	if most.Load() != 3 || now.Load() != 0 {
		t.Errorf("%d invocations at a time, and %d are left", most.Load(), now.Load())
	}
}

// An invocation without an answer ends after the timeout.
func TestTimeout(t *testing.T) {
	net, _ := message(t, 10)
	transport := newTransport(t, slow(func(ctx context.Context) { <-ctx.Done() }), net, 1, 10*time.Millisecond)
	for k := range 3 {
		_, m := messageOf(t, 10, k)
		if err := transport.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	for k := range 3 {
		select {
		case a := <-transport.Answers():
			if f := a.Failed; f == nil || f.Final || f.Interval != 2 {
				t.Errorf("%+v", a)
			}
		case <-time.After(hosttest.Patience):
			t.Fatalf("%d of 3 invocations end", k)
		}
	}
}

// slow is a client whose invocations end with their context.
type slow func(context.Context)

func (s slow) Invoke(ctx context.Context, _ *service.InvokeInput, _ ...func(*service.Options)) (*service.InvokeOutput, error) {
	s(ctx)
	return nil, errors.New("given up")
}

// Without region or credentials the error says what to set.
func TestAWSNeedsAnAccount(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": dir + "/config", "AWS_SHARED_CREDENTIALS_FILE": dir + "/credentials", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	if _, err := invoke.AWS(context.Background(), 1); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("no region: %v", err)
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	if _, err := invoke.AWS(context.Background(), 1); fault.KindOf(err) != fault.Config ||
		!strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("no credentials: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if _, err := invoke.AWS(context.Background(), 1); err != nil {
		t.Error(err)
	}
}
