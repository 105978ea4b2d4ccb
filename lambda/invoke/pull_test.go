package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/endpoint"
	"siafu/lambda/function"
	"siafu/lambda/invoke"
)

// pulling returns a transport whose invocations are answered so, by functions that pull.
func pulling(t *testing.T, o endpoint.Options, answer func(*function.Function, http.ResponseWriter, *http.Request)) (*invoke.Transport,
	*endpoint.Endpoint, []byte, *atomic.Int64) {
	t.Helper()
	net, m := message(t, 10)
	e, err := endpoint.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	f := function.New()
	t.Cleanup(f.Close) // after the service, whose last invocation may outlive the transport
	client, n := answering(t, func(w http.ResponseWriter, r *http.Request) { answer(f, w, r) })
	transport, err := invoke.New(invoke.Options{Client: client, Function: "f", Network: net, AtOnce: 1, Timeout: time.Minute, Endpoint: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(transport.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return transport, e, m, n
}

// handle does an invocation, and replies.
func handle(f *function.Function, w http.ResponseWriter, r *http.Request) {
	var request lambda.Request
	err := json.NewDecoder(r.Body).Decode(&request)
	reply, failed := lambda.Reply{}, err
	if err == nil {
		reply, failed = f.Handle(r.Context(), request)
	}
	if failed != nil {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		_ = json.NewEncoder(w).Encode(lambda.Failed{Type: "error", Message: failed.Error()})
		return
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// end returns the result of an attempt, or its error.
func end(t *testing.T, transport *invoke.Transport) (name task.Name, failure *task.Failure) {
	t.Helper()
	late := time.After(hosttest.Patience)
	for {
		select {
		case a := <-transport.Answers():
			if a.Failed != nil {
				return a.Failed.Name, a.Failed
			}
			if a.Result == nil && a.Spent != nil { // what an attempt took is told beside its end
				continue
			}
			name, err := task.NameOf(a.Result)
			if err != nil {
				t.Error(err)
			}
			return name, nil
		case <-late:
			t.Fatal("nothing comes")
		}
	}
}

// nothing checks that no other attempt is reported.
func nothing(t *testing.T, transport *invoke.Transport) {
	t.Helper()
	select {
	case a := <-transport.Answers():
		if a.Result != nil || a.Failed != nil {
			t.Errorf("a second answer: %+v", a)
		}
	case <-time.After(20 * time.Millisecond):
	}
}

// A function pulls its task and pushes its result. The end of the invocation, which may fail or
// be late, does not affect the task.
func TestPull(t *testing.T) {
	hold := make(chan struct{})
	for name, answer := range map[string]func(*function.Function, http.ResponseWriter, *http.Request){
		"good": handle,
		"late": func(f *function.Function, w http.ResponseWriter, r *http.Request) {
			handle(f, w, r)
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		},
		"crash after its result": func(f *function.Function, w http.ResponseWriter, r *http.Request) {
			handle(f, discard{w.Header()}, r)
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			fmt.Fprint(w, `{"errorType":"Runtime.ExitError"}`)
		},
		"lost connection": func(f *function.Function, w http.ResponseWriter, r *http.Request) {
			handle(f, discard{w.Header()}, r)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			transport, e, m, n := pulling(t, endpoint.Options{}, answer)
			if err := transport.Send(m); err != nil {
				t.Fatal(err)
			}
			if name, failed := end(t, transport); failed != nil || name.Interval != 2 || name.Attempt != 5 {
				t.Errorf("%v: %+v", name, failed)
			}
			if name == "late" {
				close(hold)
			}
			for until := time.Now().Add(hosttest.Patience); e.Stats().Open > 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			nothing(t, transport)
			if s := e.Stats(); n.Load() != 1 || s.Open > 0 || s.Held > 0 || s.Refusals() > 0 {
				t.Errorf("%d requests, %+v", n.Load(), s)
			}
			if s := transport.Spent(); name == "good" && (s.In != int64(len(m)) || s.Work <= 0) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A late function still delivers its result, after the result of the next attempt, while its
// invocation lasts.
func TestPullLate(t *testing.T) {
	net, m := message(t, 10)
	e, err := endpoint.Start(endpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	late := make(chan struct{})
	var begun atomic.Int64
	client, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		f := function.New()
		defer f.Close()
		if begun.Add(1) == 1 {
			select {
			case <-late:
			case <-r.Context().Done():
			}
		}
		handle(f, w, r)
	})
	transport, err := invoke.New(invoke.Options{Client: client, Function: "f", Network: net, AtOnce: 2, Timeout: time.Minute, Endpoint: e})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	_, again := messageOf(t, 10, 6)
	if err := transport.Send(m); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(hosttest.Patience); begun.Load() == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if err := transport.Send(again); err != nil {
		t.Fatal(err)
	}
	if name, failed := end(t, transport); failed != nil || name.Attempt != 6 {
		t.Errorf("%v %+v", name, failed)
	}
	close(late)
	if name, failed := end(t, transport); failed != nil || name.Attempt != 5 {
		t.Errorf("%v %+v", name, failed)
	}
}

// discard is a response that is discarded.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// An invocation that ends without a result fails once, and the memory of its task is freed.
func TestPullFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		says   string
	}{
		"nothing":   {func(w http.ResponseWriter) { fmt.Fprint(w, `{}`) }, "no result"},
		"throttled": {func(w http.ResponseWriter) { w.WriteHeader(429) }, "429"},
		"crash":     {func(w http.ResponseWriter) { w.Header().Set("X-Amz-Function-Error", "Unhandled"); fmt.Fprint(w, `{}`) }, "failed"},
		"lost":      {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			transport, e, m, _ := pulling(t, endpoint.Options{},
				func(_ *function.Function, w http.ResponseWriter, _ *http.Request) { c.answer(w) })
			if err := transport.Send(m); err != nil {
				t.Fatal(err)
			}
			if name, failed := end(t, transport); failed == nil || name.Attempt != 5 || failed.Final ||
				!strings.Contains(failed.Err.Error(), c.says) {
				t.Errorf("%v: %+v", name, failed)
			}
			nothing(t, transport)
			if s := e.Stats(); s.Open > 0 || s.Held > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A function that was invoked ahead waits for its task, which needs no other invocation.
func TestAhead(t *testing.T) {
	transport, e, m, n := pulling(t, endpoint.Options{}, handle)
	name, err := task.NameOf(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.InvokeAhead(name); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(hosttest.Patience); e.Stats().Connections == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if err := transport.Send(m); err != nil {
		t.Fatal(err)
	}
	if name, failed := end(t, transport); failed != nil || name.Attempt != 5 || n.Load() != 1 {
		t.Errorf("%v: %+v, %d invocations", name, failed, n.Load())
	}
}

// A task that never fits the endpoint's memory is not sent, and neither is an invalid one. A task that waits for memory ends
// with the transport.
func TestPullMemory(t *testing.T) {
	_, m := message(t, 10)
	large, _, _, n := pulling(t, endpoint.Options{Memory: int64(len(m))}, handle)
	if err := large.Send(m); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "--intervals") || n.Load() > 0 {
		t.Errorf("%d bytes: %v", len(m), err)
	}
	if err := large.Send([]byte("no task")); err == nil || n.Load() > 0 {
		t.Error("what is no task is sent")
	}
	transport, e, m, _ := pulling(t, endpoint.Options{Memory: 2 * int64(len(m))}, handle)
	other := task.Name{Attempt: 9}
	if _, err := e.Expect(other, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.Deliver(context.Background(), other, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := transport.Send(m); err != nil { // Close, which the test ends with, does not wait for it
		t.Fatal(err)
	}
	for until := time.Now().Add(hosttest.Patience); e.Stats().Connections == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if s := e.Stats(); s.Held != 100 || s.Answered > 0 {
		t.Errorf("%+v", s)
	}
}
