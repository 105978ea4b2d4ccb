package invoke_test

import (
	"testing"
	"time"

	"siafu/lambda/endpoint"
	"siafu/lambda/function/functiontest"
	"siafu/lambda/invoke"
	"siafu/lambda/local"
)

// BenchmarkNothing sends a task of one vertex and 27 weights through a warm local function and
// back. It measures the cost of a task without its bytes and arithmetic.
func BenchmarkNothing(b *testing.B) {
	path := functiontest.Build(b)
	for _, way := range []string{"payload", "endpoint"} {
		b.Run(way, func(b *testing.B) {
			s, err := local.Start(local.Options{Function: path, Name: "f", Concurrency: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			net, m := message(b, 1)
			o := invoke.Options{Client: invoke.Local(s, 1), Function: "f", Network: net, AtOnce: 1, Timeout: time.Minute}
			if way == "endpoint" {
				if o.Endpoint, err = endpoint.Start(endpoint.Options{}); err != nil {
					b.Fatal(err)
				}
				defer o.Endpoint.Close()
			}
			t, err := invoke.New(o)
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
		})
	}
}
