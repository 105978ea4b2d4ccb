// Package lambda contains what the invoker of the function and the function share: the payloads of
// invocations in AWS Lambda, and the limits of the service. The packages below it are the
// function, a local implementation of the service, and the transport that invokes the function.
//
// A payload is JSON, because the Invoke API accepts nothing else. It names the data endpoint that has
// the task.
package lambda
