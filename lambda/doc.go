// Package lambda contains what the invoker of the function and the function share: the payloads of
// tensor tasks in AWS Lambda, and the limits of the service. The packages below it are the
// function, a local implementation of the service, and the transport that invokes the function.
//
// A payload is JSON, because the Invoke API accepts nothing else. The bytes of a task are base64 in
// it.
package lambda
