package local

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"siafu/lambda"
)

type answer struct {
	payload []byte
	failed  bool
	usage   usage
}

func failure(kind, message string) answer {
	payload, err := json.Marshal(lambda.Failed{Type: kind, Message: message})
	if err != nil {
		panic("local: two strings cannot be encoded as JSON")
	}
	return answer{payload: payload, failed: true}
}

// routes returns the Invoke API and the Runtime API. Paths of the Runtime API begin with the token of
// the sandbox.
func (s *Service) routes() http.Handler {
	const runtime = "/{token}/2018-06-01/runtime"
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", s.invoke)
	mux.HandleFunc("GET "+runtime+"/invocation/next", s.known(s.next))
	mux.HandleFunc("POST "+runtime+"/invocation/{id}/response",
		s.known(func(w http.ResponseWriter, r *http.Request, b *sandbox) { s.reply(w, r, b, false) }))
	mux.HandleFunc("POST "+runtime+"/invocation/{id}/error",
		s.known(func(w http.ResponseWriter, r *http.Request, b *sandbox) { s.reply(w, r, b, true) }))
	mux.HandleFunc("POST "+runtime+"/init/error", s.known(s.initError))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, http.StatusNotFound, "UnknownOperationException", "the operation is not supported")
	})
	return mux
}

// refuse responds with an error in AWS's format, and counts it.
func (s *Service) refuse(w http.ResponseWriter, status int, kind, message string) {
	s.countOpen(func(n *Stats) { n.Refused++ })
	tellError(w, status, kind, message)
}

func tellError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": "User", "Message": message, "errorType": kind}) // the client may be gone
}

const readTime = 30 * time.Second

// read reads a body of at most MaxPayload bytes, at the rate of a sandbox or unlimited.
func read(w http.ResponseWriter, r *http.Request, pace paced) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTime))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	pace.Reader = http.MaxBytesReader(w, r.Body, lambda.MaxPayload)
	return io.ReadAll(pace)
}

func tooLarge(err error) bool {
	limit := (*http.MaxBytesError)(nil)
	return errors.As(err, &limit)
}

func (s *Service) invoke(w http.ResponseWriter, r *http.Request) {
	switch kind := r.Header.Get("X-Amz-Invocation-Type"); {
	case !s.signed(r):
		s.refuse(w, http.StatusForbidden, "UnrecognizedClientException", "the request is not signed with the key of this service")
		return
	case r.PathValue("name") != s.o.Name:
		s.refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+r.PathValue("name"))
		return
	case kind != "" && kind != "RequestResponse":
		s.refuse(w, http.StatusBadRequest, "InvalidParameterValueException", "only synchronous invocations are supported, not "+kind)
		return
	}
	// Take the slot before reading the body, so that memory is bounded too.
	if !s.acquire() {
		throttle(w)
		return
	}
	defer s.release()
	payload, err := read(w, r, paced{})
	switch {
	case tooLarge(err) || r.ContentLength > lambda.MaxPayload:
		s.refuse(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException",
			"Request must be smaller than "+strconv.Itoa(lambda.MaxPayload)+" bytes for the InvokeFunction operation")
	case err != nil || !json.Valid(payload):
		s.refuse(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
	default:
		s.serve(w, payload, r.Header.Get("X-Amz-Log-Type") == "Tail")
	}
}

func throttle(w http.ResponseWriter) {
	tellError(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
}

// signed reports whether a request names the service's access key.
func (s *Service) signed(r *http.Request) bool {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(credential, "/")
	return subtle.ConstantTimeCompare([]byte(key), []byte(s.key)) == 1
}

// serve runs an invocation and responds, with the end of its log if requested.
func (s *Service) serve(w http.ResponseWriter, payload []byte, log bool) {
	fault := s.o.Faults.Draw(s.drawn.Add(1))
	s.count(func(n *Stats) { n.Struck[fault]++ })
	if fault == lambda.Corrupt {
		payload = corrupted(payload)
	}
	inv := &invocation{id: rand.Text(), payload: payload, deadline: time.Now().Add(s.o.Timeout), fault: fault, done: make(chan answer, 2)}
	a, err := s.run(inv)
	switch {
	case errors.Is(err, errThrottled):
		s.count(func(n *Stats) { n.Throttled++ })
		throttle(w)
		return
	case err != nil:
		tellError(w, http.StatusInternalServerError, "ServiceException", err.Error())
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-RequestId", inv.id)
	h.Set("X-Amz-Executed-Version", "$LATEST")
	if a.failed {
		s.countOpen(func(n *Stats) { n.Failed++ })
		h.Set("X-Amz-Function-Error", "Unhandled")
	}
	if log {
		h.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(a.usage.report(inv.id, s.o.Memory))))
	}
	_, _ = w.Write(a.payload) // the client may be gone
}

// run runs an invocation in a sandbox until its end.
func (s *Service) run(inv *invocation) (answer, error) {
	if inv.fault == lambda.Throttle {
		return answer{}, errThrottled
	}
	patience := time.NewTimer(s.o.Timeout)
	defer patience.Stop()
	if inv.fault == lambda.Lose {
		s.count(func(n *Stats) { n.Invocations++ })
		select {
		case <-patience.C:
			return failure("Sandbox.Timedout", "RequestId: "+inv.id+" Error: Task timed out"), nil
		case <-s.ended:
			return answer{}, errClosed
		}
	}
	if err := s.dispatch(inv); err != nil {
		return answer{}, err
	}
	if inv.fault == lambda.Duplicate {
		s.duplicate(inv)
	}
	select {
	case a := <-inv.done:
		if inv.fault == lambda.Late {
			sleep(s.o.Faults.Delay, s.ended)
		}
		return a, nil
	case <-patience.C:
		s.expire(inv)
	}
	return <-inv.done, nil // the sandbox has ended, or has just responded
}

// duplicate runs an invocation in a second sandbox too. The first response counts.
func (s *Service) duplicate(inv *invocation) {
	twin := &invocation{id: inv.id, payload: inv.payload, deadline: inv.deadline, done: inv.done}
	if s.dispatch(twin) == nil {
		time.AfterFunc(s.o.Timeout, func() { s.expire(twin) })
	}
}

// expire ends the sandbox that still runs an invocation after its time limit.
func (s *Service) expire(inv *invocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if inv.on.current == inv {
		inv.on.end("Sandbox.Timedout")
	}
}

// known accepts only requests from sandboxes.
func (s *Service) known(do func(http.ResponseWriter, *http.Request, *sandbox)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		b := s.sandboxes[r.PathValue("token")]
		s.mu.Unlock()
		if b == nil {
			s.refuse(w, http.StatusForbidden, "InvalidSandbox", "there is no such sandbox")
			return
		}
		do(w, r, b)
	}
}

// next sends a sandbox its next invocation, once there is one.
func (s *Service) next(w http.ResponseWriter, r *http.Request, b *sandbox) {
	s.markReady(b)
	select {
	case <-r.Context().Done():
	case <-b.ended:
	case <-s.ended:
	case inv := <-b.work:
		s.markTaken(b, inv)
		if inv.fault == lambda.Crash {
			s.tooMuch(b) // record its peak memory
			b.kill()
			<-b.ended
			return
		}
		if inv.fault == lambda.Straggle {
			sleep(slowStart, b.ended)
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+Region+":000000000000:function:"+s.o.Name)
		_, _ = paced{Writer: w, bucket: b.in, ended: b.ended}.Write(inv.payload) // a sandbox that does not receive it ends
	}
}

// slowStart is the delay of the payload of a straggling invocation, so that very short invocations
// are slow too.
const slowStart = lambda.Slowness * time.Millisecond

// markReady records that a sandbox is ready for work. A new sandbox is ready after its cold start.
func (s *Service) markReady(b *sandbox) {
	s.mu.Lock()
	ready := b.ready
	s.mu.Unlock()
	if ready {
		return
	}
	sleep(b.delay-time.Since(b.began), b.ended)
	s.mu.Lock()
	b.ready, b.init = true, time.Since(b.began)
	s.mu.Unlock()
}

func (s *Service) markTaken(b *sandbox, inv *invocation) {
	s.mu.Lock()
	inv.taken, inv.since = true, time.Now()
	s.mu.Unlock()
	select {
	case b.took <- struct{}{}:
	default: // the signal for an earlier invocation is still pending
	}
}

func (s *Service) reply(w http.ResponseWriter, r *http.Request, b *sandbox, failed bool) {
	payload, err := read(w, r, paced{bucket: b.out, ended: b.ended})
	id, a := r.PathValue("id"), answer{payload: payload, failed: failed}
	if s.tooMuch(b) {
		<-b.ended
		return
	}
	switch {
	case tooLarge(err):
		a = failure("Function.ResponseSizeTooLarge",
			"Response payload size exceeded maximum allowed payload size ("+strconv.Itoa(lambda.MaxPayload)+" bytes).")
	case err != nil:
		s.refuse(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	case !json.Valid(payload):
		a = failure("Runtime.InvalidResponse", "the function's response is not JSON")
	}
	switch {
	case !s.finish(b, id, a):
		s.refuse(w, http.StatusBadRequest, "InvalidRequestID", "this sandbox has no such invocation")
	case tooLarge(err):
		s.refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// initError handles a sandbox's report that it cannot start. The process ends itself, or is killed
// here.
func (s *Service) initError(w http.ResponseWriter, r *http.Request, b *sandbox) {
	_, _ = read(w, r, paced{bucket: b.out, ended: b.ended}) // the log contains it too
	w.WriteHeader(http.StatusAccepted)
	b.kill()
}
