package endpoint

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"siafu/lambda"
)

// Any request gets a known status. Its result is accepted or counted once, and all memory is
// freed.
func FuzzServe(f *testing.F) {
	name := attempt(1)
	good := message(name, 200)
	f.Add("GET", lambda.TaskPath, "Bearer ", true, false, []byte{})
	f.Add("POST", lambda.ResultPath, "Bearer ", true, true, good)
	f.Add("POST", lambda.ResultPath, "Bearer ", true, true, message(attempt(2), 200))
	f.Add("POST", lambda.ResultPath, "Bearer ", true, false, good)
	f.Add("POST", lambda.ResultPath, "Basic ", false, true, good[:100])
	f.Add("PUT", "/", "", false, false, []byte("body"))
	shared := newBench(f, Options{Grace: time.Minute})
	f.Fuzz(func(t *testing.T, method, path, authorization string, token, fetch bool, body []byte) {
		b := bench{shared.Endpoint, t, shared.client, shared.results}
		p := b.open(name, 1000, good)
		if fetch {
			b.serve(httptest.NewRecorder(), request("GET", lambda.TaskPath, "Bearer "+p.Token, nil))
		}
		if token {
			authorization += p.Token
		}
		before, w := b.Stats(), httptest.NewRecorder()
		b.serve(w, request(method, path, authorization, body))
		after := b.Stats()
		done := after.Fetched + after.Answered - before.Fetched - before.Answered
		refused := after.Refusals() - before.Refusals()
		known := slices.ContainsFunc(refusalInfos[:], func(a refusalInfo) bool { return a.status == w.Code })
		if done+refused != 1 || (done == 1) != (w.Code < 300) || refused == 1 && !known {
			t.Errorf("status %d, %d done, %d refused", w.Code, done, refused)
		}
		if came := b.Withdraw(name); came != (after.Answered > before.Answered) {
			t.Errorf("a result has come: %t", came)
		} else if came && !bytes.Equal(b.result(), body) {
			t.Error("another result comes")
		}
		b.until("something is left", func(s Stats) bool { return s.Held == 0 && s.Open == 0 })
	})
}

// request returns a request that may be malformed.
func request(method, path, authorization string, body []byte) *http.Request {
	r := httptest.NewRequest("GET", "/", bytes.NewReader(body))
	r.Method, r.URL.Path = method, path
	r.Header["Authorization"] = []string{authorization}
	return r
}
