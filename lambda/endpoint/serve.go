package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"siafu/kernels/task"
	"siafu/lambda"
)

func (e *Endpoint) serve(w http.ResponseWriter, r *http.Request) {
	if v, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		v.asked.Store(true)
	}
	e.setDeadlines(w, 0)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme != "Bearer" {
		token = ""
	}
	var why Refusal
	var ok bool
	switch r.Method + " " + r.URL.Path {
	case "GET " + lambda.TaskPath:
		why, ok = e.fetch(w, r, token)
	case "POST " + lambda.ResultPath:
		why, ok = e.answer(w, r, token)
	default:
		why = Malformed
	}
	if !ok {
		e.refuse(w, why)
	}
}

// refuse responds with the reason, and closes the connection, so that the body is not read.
func (e *Endpoint) refuse(w http.ResponseWriter, why Refusal) {
	e.mu.Lock()
	e.stats.Refused[why]++
	e.mu.Unlock()
	e.setDeadlines(w, 0)
	w.Header().Set("Connection", "close")
	http.Error(w, refusalInfos[why].text, refusalInfos[why].status)
}

// setDeadlines sets the deadlines of a request for reading and writing a body of n bytes.
func (e *Endpoint) setDeadlines(w http.ResponseWriter, n int64) {
	end := time.Now().Add(e.o.Grace + time.Duration(float64(n)/float64(e.o.Rate)*float64(time.Second)))
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(end) // an ended connection fails at its next use
	_ = c.SetWriteDeadline(end)
}

func (e *Endpoint) fetch(w http.ResponseWriter, r *http.Request, token string) (Refusal, bool) {
	if r.ContentLength != 0 {
		return Malformed, false
	}
	t, why, ok := e.advance(token, opened)
	if !ok {
		return why, false
	}
	// Without a deadline the wait ends only if the function disconnects.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	select {
	case <-t.delivered:
	case <-t.context.Done():
	case <-r.Context().Done():
		return Broken, false
	}
	message, why, ok := e.takeTask(t)
	if !ok {
		return why, false
	}
	defer e.tasks.release(int64(len(message)))
	e.setDeadlines(w, int64(len(message)))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(message)))
	n, err := w.Write(message)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.BytesOut += int64(n)
	if err != nil { // the response has already begun
		e.stats.Refused[broken(err)]++
	} else {
		e.stats.Fetched++
	}
	return 0, true
}

func broken(err error) Refusal {
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return Slow
	}
	return Broken
}

func (e *Endpoint) answer(w http.ResponseWriter, r *http.Request, token string) (Refusal, bool) {
	t, why, ok := e.advance(token, fetched)
	n := r.ContentLength
	switch {
	case !ok:
		return why, false
	case n < 0:
		return Malformed, false
	case n > t.most:
		return Oversized, false
	}
	ctx, cancel := context.WithTimeout(e.context, e.o.Grace)
	defer cancel()
	if err := e.answers.reserve(ctx, n); err != nil {
		return Full, false
	}
	e.setDeadlines(w, n)
	result := make([]byte, n)
	why, ok = e.read(r, t, result)
	if !ok {
		e.answers.release(n)
		return why, false
	}
	e.running.Go(func() {
		defer e.answers.release(n)
		t.take(result)
	})
	w.WriteHeader(http.StatusNoContent)
	return 0, true
}

func (e *Endpoint) read(r *http.Request, t *ticket, result []byte) (Refusal, bool) {
	if _, err := io.ReadFull(r.Body, result); err != nil {
		return broken(err), false
	}
	switch name, err := task.NameOf(result); {
	case err != nil:
		return Malformed, false
	case name != t.name:
		return OtherTask, false
	}
	return e.accept(t, int64(len(result)))
}
