// Package local implements the part of AWS Lambda that tensor work needs, on this
// machine: the Invoke API for the invoker, and the Runtime API for sandboxes, which are
// processes of the function's executable. No other Go implementation exists, and none
// can inject faults.
//
// A Service listens on the loopback address only. The invoker presents the key of the
// service. A sandbox has a token in the address of its Runtime API. Both are random, so
// other users of the machine are refused.
//
// As in AWS: one invocation at a time in a sandbox, and warm sandboxes first. Errors are 429
// above the limit of concurrency, 413 above 6 MiB, and 400 for a payload that is not JSON.
// X-Amz-Function-Error is set if the function fails. A new sandbox replaces one that ended or
// timed out. On request the response has the log line with the billed duration. Limits give
// sandboxes the resources of the service (memory, CPU fraction, bandwidth, cold starts, new
// sandboxes), and Faults make invocations fail at random, both without root. Not as in AWS:
// signatures are not verified, and there are neither events nor streams.
//
// Connections of a function are limited if it opens them through the relay, which the
// environment of a sandbox names: HTTP CONNECT to loopback addresses and to registered
// addresses, for processes of this user.
//
// Close ends all processes. If no process is left to call it, as after a SIGKILL, the
// kernel ends them.
package local
