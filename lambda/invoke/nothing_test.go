package invoke_test

import (
	"testing"
	"time"

	"siafu/internal/testkit/functiontest"
	"siafu/lambda/endpoint"
	"siafu/lambda/invoke"
	"siafu/lambda/local"
)

// BenchmarkNothing sends a task of one vertex and 27 weights through a warm local function and
// back. It measures the cost of a task without its bytes and arithmetic.
func BenchmarkNothing(b *testing.B) {
	s, err := local.Start(local.Options{Function: functiontest.Build(b), Name: "f", Concurrency: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	e, err := endpoint.Start(endpoint.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	net, m := message(b, 1)
	t, err := invoke.New(invoke.Options{Client: invoke.Local(s, 1), Function: "f", Network: net, AtOnce: 1,
		Timeout: time.Minute, Endpoint: e})
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	for b.Loop() {
		if err := t.Send(m); err != nil {
			b.Fatal(err)
		}
		for done := false; !done; {
			a := <-t.Answers()
			if a.Failed != nil {
				b.Fatal(a.Failed.Err)
			}
			done = a.Spent != nil // the last thing that is said of an attempt
		}
	}
}
