// Package invoke sends tensor tasks to invocations of a function, in AWS Lambda or in a service of
// package local, and returns their results. It implements tensor.Transport: it reports failures,
// and the sender of a task decides about the next attempt.
package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"siafu/internal/fault"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/endpoint"
	"siafu/lambda/pool"
)

// Client invokes functions. It is the used part of the SDK's client. The client must not retry,
// because each attempt at a task has its own name.
type Client interface {
	Invoke(ctx context.Context, in *service.InvokeInput, options ...func(*service.Options)) (*service.InvokeOutput, error)
}

// Options are the options of a transport.
type Options struct {
	Client   Client
	Function string // name or ARN
	Network  lambda.Network
	Endpoint *endpoint.Endpoint // from which functions pull tasks
	AtOnce   int                // concurrent invocations, at least 1; further tasks wait
	Timeout  time.Duration      // of an invocation, so that a lost connection gives back its slot
	Close    func() error       // called at the end of Close; may be nil
}

// Transport invokes the function. Its methods are safe for concurrent use.
type Transport struct {
	o       Options
	network json.RawMessage
	context context.Context // ends with Close
	cancel  context.CancelFunc
	places  chan struct{}
	answers chan task.Answer
	senders sync.WaitGroup

	mu    sync.Mutex
	spent lambda.Spent
}

// New returns a transport for the tasks of one network.
func New(o Options) (*Transport, error) {
	//lint:ignore SA1026 Custom is nil in what is sent
	network, err := json.Marshal(o.Network)
	if err != nil {
		return nil, fault.New(fault.Config, "lambda", "", "cannot encode the network: %v", err)
	}
	t := &Transport{
		o: o, network: network, places: make(chan struct{}, max(o.AtOnce, 1)),
		answers: make(chan task.Answer),
	}
	t.context, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// Send sends a task to an invocation: the one that InvokeAhead started for it, or a new one once a
// slot is free. It does not wait. It returns an error if the task is too large for the endpoint.
func (t *Transport) Send(message []byte) error {
	name, err := task.NameOf(message)
	if err != nil {
		return err
	}
	if n, most := int64(len(message)), t.o.Endpoint.MostTask(); n > most {
		return lambda.TooLarge("a task", n, most)
	}
	if err := t.InvokeAhead(name); err != nil && !errors.Is(err, endpoint.ErrOpen) {
		return err
	}
	t.senders.Go(func() { t.deliver(name, message) })
	return nil
}

// InvokeAhead implements tensor.AheadInvoker: it invokes a function, which waits for its task until
// Send delivers the task (Dorylus, §6).
func (t *Transport) InvokeAhead(name task.Name) error {
	pull, err := t.o.Endpoint.Expect(name, 0, func(result []byte) { t.report(task.Answer{Result: result}) })
	if err != nil {
		return err
	}
	t.senders.Go(func() { t.send(name, pull) })
	return nil
}

// deliver gives a task to the endpoint. If that fails, the invocation fails.
func (t *Transport) deliver(name task.Name, message []byte) {
	ctx, cancel := context.WithTimeout(t.context, t.o.Timeout)
	defer cancel()
	if err := t.o.Endpoint.Deliver(ctx, name, message); ctx.Err() != nil && err != nil {
		t.o.Endpoint.Withdraw(name)
	}
}

// send runs one invocation and reports its outcome, unless the transport ends before. The result has
// already been reported by then, whatever the invocation's response.
func (t *Transport) send(name task.Name, pull lambda.Pull) {
	select {
	case t.places <- struct{}{}:
	case <-t.context.Done():
		t.o.Endpoint.Withdraw(name)
		return
	}
	began := time.Now()
	tail, err := t.invoke(lambda.Request{Network: t.network, Pull: pull})
	<-t.places
	var a task.Answer
	if charged(err) {
		a.Spent = spent(name, tail, time.Since(began))
	}
	if arrived := t.o.Endpoint.Withdraw(name); !arrived {
		err = cmp.Or(err, errNoResult)
		a.Failed = &task.Failure{Name: name, Err: err, Final: final(err)}
	}
	t.report(a)
}

var errNoResult = errors.New("the invocation ended, but its function sent no result")

// report sends an answer to Answers, unless it is empty.
func (t *Transport) report(a task.Answer) {
	if a.Result == nil && a.Failed == nil && a.Spent == nil {
		return
	}
	select {
	case t.answers <- a:
	case <-t.context.Done():
	}
}

// invoke runs one invocation. It returns the tail of the log if there is one.
func (t *Transport) invoke(r lambda.Request) (tail *string, err error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.context, t.o.Timeout)
	defer cancel()
	out, err := t.o.Client.Invoke(ctx,
		&service.InvokeInput{FunctionName: aws.String(t.o.Function), Payload: payload, LogType: types.LogTypeTail})
	if status(err) == http.StatusTooManyRequests {
		return nil, fmt.Errorf("%w: %w", pool.Throttled, err)
	}
	if err != nil {
		return nil, err
	}
	if out.FunctionError != nil {
		failed := &lambda.Failed{Type: *out.FunctionError, Message: string(out.Payload)}
		_ = json.Unmarshal(out.Payload, failed) // else keep the defaults
		return out.LogResult, failed
	}
	var reply lambda.Reply
	if err := json.Unmarshal(out.Payload, &reply); err != nil {
		return out.LogResult, err
	}
	if reply.Refused != "" {
		return out.LogResult, &refused{fault.New(fault.Config, "", "", "%s", reply.Refused)}
	}
	if reply.Spent != nil {
		t.mu.Lock()
		t.spent.Add(*reply.Spent)
		t.mu.Unlock()
	}
	return out.LogResult, nil
}

// refused is a permanent reason for which a function returns no result.
type refused struct{ why *fault.Error }

func (r *refused) Error() string { return r.why.Error() }

func (r *refused) Unwrap() error { return r.why }

// status returns the HTTP status of an error's response, or 0 if there is none.
func status(err error) int {
	response := (*awshttp.ResponseError)(nil)
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

// charged reports whether an invocation with this error costs anything. It is free if the service
// rejected the request.
func charged(err error) bool { s := status(err); return s < 400 || s >= 500 }

// final reports whether another attempt would fail too: the function does not exist, it may not be
// invoked, or it rejected the task.
func final(err error) bool {
	switch status(err) {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge:
		return true
	}
	return errors.As(err, new(*refused))
}

// Answers implements tensor.Transport.
func (t *Transport) Answers() <-chan task.Answer { return t.answers }

// Spent returns the resource usage of tasks that functions have reported so far.
func (t *Transport) Spent() lambda.Spent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spent
}

// Close ends the transport. Running invocations are abandoned, and no goroutine is left. The
// endpoint may have other users and stays open.
func (t *Transport) Close() error {
	t.cancel()
	t.senders.Wait()
	if t.o.Close == nil {
		return nil
	}
	return t.o.Close()
}
