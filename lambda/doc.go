// Package lambda holds what the invoker of the function and the function agree on:
// the payloads of tensor tasks in AWS Lambda, and the limits of the service. The
// packages below it are the function itself, a local implementation of the service,
// and the transport that invokes.
//
// A payload is JSON, because the Invoke API takes nothing else; the bytes of a task
// are base64 there.
package lambda
