package function

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/endpoint"
)

// job returns an encoded task of a network.
func job(t *testing.T, attempt int) (json.RawMessage, task.Name, []byte) {
	t.Helper()
	s := model.Spec{Kind: "mlp", Dims: []int{8, 3}, Seed: 1}
	s.Choose(model.Load{}, model.Choices{Order: "apply-first", CacheInput: "off"})
	//lint:ignore SA1026 Custom is nil in what is sent
	text, err := json.Marshal(lambda.Network{Spec: s, Kernel: "go"})
	if err != nil {
		t.Fatal(err)
	}
	const vertices = 100
	net, ops, a := model.New(s, false), kernels.NewTeam(1), mapped.NewArena()
	defer func() { ops.Close(); a.Free() }()
	ids, x := make([]uint32, vertices), make([]float32, vertices*8)
	for i := range x {
		x[i] = float32(i % 7)
	}
	in := model.Place(ops, a, graph.Features{Rows: vertices, Dim: 8, Dense: x}, ids, ids)
	store := model.NewStore(net, in, model.InStep, ops, a)
	work := task.Task{
		Name: task.Name{Interval: 2, Attempt: attempt, Stage: model.Apply}, Do: []model.Do{{Stage: model.Apply}},
		Frame: store.Frame(0, vertices, ops, kernels.Mat{}),
	}
	return text, work.Name, work.Encode(nil, ops)
}

// side is an endpoint with the results of functions.
type side struct {
	*endpoint.Endpoint
	results chan []byte
}

func start(t *testing.T, o endpoint.Options) side {
	t.Helper()
	e, err := endpoint.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return side{e, make(chan []byte, 10)} // more than any test brings
}

// open returns the request for an available task.
func open(t *testing.T, e side, attempt int, most int64) lambda.Request {
	t.Helper()
	network, name, m := job(t, attempt)
	p, err := e.Expect(name, most, func(r []byte) { e.results <- r })
	if err == nil {
		err = e.Deliver(t.Context(), name, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return lambda.Request{Network: network, Pull: p}
}

// The result is that of the task on this machine, and the reply has its durations. A warm function
// reuses its connection.
func TestPull(t *testing.T) {
	f, e := New(), start(t, endpoint.Options{})
	defer f.Close()
	for attempt := range 3 {
		network, name, m := job(t, attempt)
		if err := f.setNetwork(network); err != nil {
			t.Fatal(err)
		}
		want, err := task.Work(f.network, m, nil, f.ops)
		if err != nil || len(want) < 100*3*4 {
			t.Fatalf("%d bytes of a result: %v", len(want), err)
		}
		reply, err := f.Handle(t.Context(), open(t, e, attempt, 0))
		if err != nil || reply.Refused != "" || reply.Spent == nil {
			t.Fatalf("%+v %v", reply, err)
		}
		if got := <-e.results; !bytes.Equal(got, want) || !e.Withdraw(name) {
			t.Error("the result is another one")
		}
		if s := reply.Spent; s.In != int64(len(m)) || s.Out != int64(len(want)) || s.Fetch <= 0 || s.Work <= 0 || s.Push <= 0 {
			t.Errorf("%+v", s)
		}
	}
	if s := e.Stats(); s.PeakConnections != 1 || s.Answered != 3 || s.Refusals() > 0 {
		t.Errorf("%+v", s)
	}
}

// A function connects only to the given endpoint, wherever the address leads, and sends the
// token to no other.
func TestFingerprint(t *testing.T) {
	e, other := start(t, endpoint.Options{}), start(t, endpoint.Options{})
	f := New()
	defer f.Close()
	if _, err := f.Handle(t.Context(), open(t, e, 1, 0)); err != nil {
		t.Fatal(err)
	}
	r := open(t, e, 2, 0)
	r.Pull.Address = other.Address()
	if _, err := f.Handle(t.Context(), r); err == nil || !strings.Contains(err.Error(), "wrong endpoint") {
		t.Errorf("an impostor: %v", err)
	}
	var asked atomic.Bool
	authority := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	authority.Config.ErrorLog = log.New(io.Discard, "", 0)
	authority.StartTLS()
	defer authority.Close()
	r.Pull.Address = authority.Listener.Addr().String()
	if _, err := f.Handle(t.Context(), r); err == nil || asked.Load() {
		t.Errorf("another certificate: %v", err)
	}
	if other.Stats().Fetched+other.Stats().Answered > 0 || other.Stats().Refused[endpoint.Wrong] > 0 {
		t.Errorf("the impostor has seen a request: %+v", other.Stats())
	}
	r.Pull.Address = e.Address() // and the token is as good as before
	if _, err := f.Handle(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// A corrupt result is refused by the endpoint, which fails the invocation.
func TestCorrupt(t *testing.T) {
	f, e := New(), start(t, endpoint.Options{})
	defer f.Close()
	r := open(t, e, 1, 0)
	r.Corrupt = true
	if reply, err := f.Handle(t.Context(), r); err == nil || !strings.Contains(err.Error(), "neither a result") {
		t.Errorf("%+v %v", reply, err)
	}
	if s := e.Stats(); s.Refused[endpoint.Malformed] != 1 || s.Answered > 0 {
		t.Errorf("%+v", s)
	}
}

// A refusal by the endpoint, or an invalid descriptor, fails the invocation with the reason. A
// result that is too large is a permanent error.
func TestPullRefused(t *testing.T) {
	e := start(t, endpoint.Options{})
	f := New()
	defer f.Close()
	done := open(t, e, 1, 0)
	if _, err := f.Handle(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	<-e.results
	wrong, nothing := open(t, e, 2, 0), open(t, e, 3, 0)
	wrong.Pull.Token += "x"
	nothing.Pull.Fingerprint = "none"
	for want, r := range map[string]lambda.Request{"has been used": done, "no ticket": wrong, "SHA-256": nothing} {
		if reply, err := f.Handle(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v", want, reply, err)
		}
	}
	if reply, err := f.Handle(t.Context(), open(t, e, 4, 50)); err != nil || !strings.Contains(reply.Refused, "--intervals") {
		t.Errorf("a large result: %+v %v", reply, err)
	}
	if s := e.Stats(); s.Refusals() != 2 || s.Refused[endpoint.Reused] != 1 || s.Refused[endpoint.Wrong] != 1 {
		t.Errorf("%+v", s)
	}
}

// The end of an endpoint ends the invocation of a waiting function. A missing endpoint has the
// same effect. The next invocation uses another endpoint.
func TestEndpointEnds(t *testing.T) {
	e := start(t, endpoint.Options{})
	f := New()
	defer f.Close()
	network, name, _ := job(t, 1)
	p, err := e.Expect(name, 0, func(r []byte) { e.results <- r })
	if err != nil {
		t.Fatal(err)
	}
	r, end := lambda.Request{Network: network, Pull: p}, make(chan error)
	go func() {
		_, err := f.Handle(context.Background(), r)
		end <- err
	}()
	for until := time.Now().Add(hosttest.Patience); e.Stats().Connections == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	_ = e.Close()
	if err := <-end; err == nil {
		t.Error("there is a result")
	}
	if _, err := f.Handle(t.Context(), r); err == nil {
		t.Error("an endpoint that is gone answers")
	}
	if _, err := f.Handle(t.Context(), open(t, start(t, endpoint.Options{}), 2, 0)); err != nil {
		t.Error(err)
	}
}

// With a relay, all pulls and pushes pass through it, also to loopback addresses. The relay sees
// only TLS.
func TestRelay(t *testing.T) {
	var through atomic.Int64
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			t.Errorf("%s %s: %v", r.Method, r.Host, err)
			return
		}
		defer there.Close()
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here) }()
		n, _ := io.Copy(here, there)
		through.Add(n)
	}))
	t.Setenv("SIAFU_RELAY", relay.Listener.Addr().String())
	e, f := start(t, endpoint.Options{}), New()
	reply, err := f.Handle(t.Context(), open(t, e, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	_ = e.Close()
	relay.Close()
	for until := time.Now().Add(hosttest.Patience); through.Load() < reply.Spent.In && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if through.Load() < reply.Spent.In {
		t.Errorf("%d of %d bytes came through the relay", through.Load(), reply.Spent.In)
	}
}
