package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siafu/internal/fault"
)

// quick returns a fetcher that waits for nothing longer than a test may.
func quick(t *testing.T) *fetcher {
	f := newFetcher()
	f.attempts, f.pause, f.most, f.stall, f.every = 3, time.Millisecond, 4*time.Millisecond, 500*time.Millisecond, 0
	f.log = t.Logf
	return f
}

// slowStall is the stall time of a slow download: a busy machine may delay each of its pieces
// by most of it.
const slowStall = 3 * time.Second

// content returns a file of 3 MiB that differs everywhere.
func content() []byte {
	b := make([]byte, 3<<20)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// server serves data with ranges; before each answer it calls odd with the
// number of the request, which may answer instead and then returns true.
func server(t *testing.T, data []byte, odd func(n int32, w http.ResponseWriter,
	r *http.Request) bool) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if odd == nil || !odd(n, w, r) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/f", requests
}

// cut answers with part of the data under a header that promises all of it.
func cut(data []byte, w http.ResponseWriter) bool {
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Write(data[:len(data)/2])
	panic(http.ErrAbortHandler)
}

func TestFetch(t *testing.T) {
	data := content()
	right := file{Name: "f", Bytes: int64(len(data)), SHA256: sumOf(data)}
	unknown := file{Name: "f"}
	for _, tt := range []struct {
		name     string
		part     []byte // what an earlier run left
		cached   []byte // what an earlier run finished
		want     file
		odd      func(n int32, w http.ResponseWriter, r *http.Request) bool
		kind     fault.Kind // of the error
		message  string     // "": success
		requests int32
	}{
		{name: "success", want: right, requests: 1},
		{name: "size and checksum unknown", want: unknown, requests: 1},
		{name: "in the cache", cached: data, want: right, requests: 0},
		{name: "wrong in the cache", cached: data[1:], want: right, kind: fault.Data,
			message: "3145727 bytes, expected 3145728", requests: 0},
		{name: "resume", part: data[:1<<20], want: right, requests: 1,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				if got := r.Header.Get("Range"); got != "bytes=1048576-" {
					t.Errorf("range is %q", got)
				}
				return false
			}},
		{name: "resume what is complete", part: data, want: right, requests: 1},
		{name: "resume what is too long", part: append(content(), 1), want: right, requests: 2},
		{name: "resume where the server cannot", part: []byte("rubbish"), want: right, requests: 1,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool { w.Write(data); return true }},
		{name: "resume answered from elsewhere", part: data[:10], want: right, requests: 2,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				if n > 1 {
					return false
				}
				w.Header().Set("Content-Range", "bytes 3-/3145728")
				w.WriteHeader(http.StatusPartialContent)
				return true
			}},
		{name: "broken line", want: right, requests: 2,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool { return n == 1 && cut(data, w) }},
		{name: "always truncated", want: right, kind: fault.IO, message: "unexpected EOF; check the network", requests: 3,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Length", "1000")
				w.Write(data[:10])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}},
		{name: "overloaded", want: right, requests: 3,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				if n < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return n < 3
			}},
		{name: "stalled", want: right, requests: 2,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				if n > 1 {
					return false
				}
				w.Write(data[:2<<20])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return true
			}},
		{name: "slow", want: unknown, requests: 1,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				for i := range 8 { // takes longer than slowStall in all
					w.Write(data[i*len(data)/8 : (i+1)*len(data)/8])
					w.(http.Flusher).Flush()
					time.Sleep(slowStall / 7)
				}
				return true
			}},
		{name: "not found", want: right, kind: fault.Missing, message: "404", requests: 1,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }},
		{name: "forbidden", want: right, kind: fault.IO, message: "403", requests: 1,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(403); return true }},
		{name: "corrupt", want: right, kind: fault.Data, message: "expected " + sumOf(data), requests: 1,
			odd: func(n int32, w http.ResponseWriter, r *http.Request) bool {
				w.Write(append([]byte{data[0] ^ 1}, data[1:]...))
				return true
			}},
		{name: "too long", want: file{Name: "f", Bytes: 10, SHA256: sumOf(data[:10])}, kind: fault.Data,
			message: "11 bytes, expected 10", requests: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, requests := server(t, data, tt.odd)
			path := filepath.Join(t.TempDir(), "f")
			for name, b := range map[string][]byte{path + ".part": tt.part, path: tt.cached} {
				if b != nil {
					if err := os.WriteFile(name, b, 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
			f := quick(t)
			if tt.name == "slow" {
				f.stall = slowStall
			}
			err := f.fetch(context.Background(), url, path, tt.want)
			if got := requests.Load(); got != tt.requests {
				t.Errorf("%d requests, want %d", got, tt.requests)
			}
			if tt.message != "" {
				if fault.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.message) ||
					!strings.Contains(err.Error(), url) {
					t.Errorf("error is %v (kind %d), want kind %d and %q", err, fault.KindOf(err), tt.kind, tt.message)
				}
				// Somebody may have put the one there that was not fetched.
				if left, err := os.ReadFile(path); (err == nil) != (tt.cached != nil) || !bytes.Equal(left, tt.cached) {
					t.Errorf("%d bytes are left, %d were in the cache", len(left), len(tt.cached))
				}
				return
			}
			got, readErr := os.ReadFile(path)
			if err != nil || readErr != nil || !bytes.Equal(got, data) {
				t.Errorf("errors %v, %v; the file has %d bytes", err, readErr, len(got))
			}
			if _, err := os.Stat(path + ".part"); err == nil {
				t.Error("the part was left")
			}
		})
	}
}

// TestTrustOnFirstUse: what came first is what must come later.
func TestTrustOnFirstUse(t *testing.T) {
	data := []byte("version one")
	url, _ := server(t, nil, func(n int32, w http.ResponseWriter, r *http.Request) bool { w.Write(data); return true })
	path := filepath.Join(t.TempDir(), "f")
	f := quick(t)
	var log strings.Builder
	f.log = func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
	if err := f.fetch(context.Background(), url, path, file{Name: "f"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "sha256="+sumOf(data)+" verified=false") {
		t.Errorf("log is %q", log.String())
	}
	if note, err := os.ReadFile(path + ".sha256"); err != nil || string(note) != sumOf(data)+"  f\n" {
		t.Errorf("note is %q, %v", note, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.fetch(context.Background(), url, path, file{Name: "f"}); err != nil {
		t.Errorf("the same again: %v", err)
	}
	os.Remove(path)
	data = []byte("version two")
	err := f.fetch(context.Background(), url, path, file{Name: "f"})
	if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), path+".sha256") {
		t.Errorf("another version: %v", err)
	}
}

func TestNoNetwork(t *testing.T) {
	s := httptest.NewServer(nil)
	url := s.URL + "/f"
	s.Close() // nobody listens there now
	path := filepath.Join(t.TempDir(), "f")
	err := quick(t).fetch(context.Background(), url, path, file{Name: "f"})
	if fault.KindOf(err) != fault.IO || !strings.Contains(err.Error(), "store it as "+path) {
		t.Errorf("error is %v", err)
	}
}

// TestCancel: a cancelled download keeps what it has, and goes on from there.
func TestCancel(t *testing.T) {
	data := content()
	path := filepath.Join(t.TempDir(), "f")
	ctx, cancel := context.WithCancel(context.Background())
	url, _ := server(t, data, func(n int32, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		w.Write(data[:2<<20])
		w.(http.Flusher).Flush()
		for range 1000 { // until all of it is there, which a busy machine may take a while for
			time.Sleep(20 * time.Millisecond)
			if sizeOf(path+".part") == 2<<20 {
				break
			}
		}
		cancel()
		<-r.Context().Done()
		return true
	})
	want := file{Name: "f", Bytes: int64(len(data)), SHA256: sumOf(data)}
	f := quick(t)
	f.stall = time.Minute
	err := f.fetch(ctx, url, path, want)
	if fault.KindOf(err) != fault.Stopped || sizeOf(path+".part") != 2<<20 {
		t.Fatalf("error is %v with %d bytes kept", err, sizeOf(path+".part"))
	}
	if err := f.fetch(context.Background(), url, path, want); err != nil {
		t.Error(err)
	}
}
