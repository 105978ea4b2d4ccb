// Package local is AWS Lambda on this machine, as far as tensor work needs it: the
// Invoke API for whoever invokes, and the Runtime API for sandboxes, which are
// processes of the function's executable. Nobody else's implementation is there for
// Go, and none can fail when asked to.
//
// A Service listens on the loopback address alone. Whoever invokes shows its key; a
// sandbox has a token in the address of its Runtime API. Both are random, so that
// other users of the machine are refused.
//
// What the service does as AWS does: one invocation at a time in a sandbox, warm
// sandboxes first, 429 above the bound of concurrency, 413 above 6 MiB, 400 for a
// payload that is no JSON, X-Amz-Function-Error where the function fails, a new
// sandbox for one that has ended or took too long; where it is asked for, the line of
// the log that says what an invocation is charged for. Limits make sandboxes as weak as
// the service's (memory, processor share, bandwidth, cold starts, new sandboxes), and
// Faults have invocations go wrong by chance, both without root. What it does not:
// signatures are not checked; there are neither events nor streams.
//
// Connections that a function makes by itself are limited where it makes them through
// the relay, which the environment of a sandbox names: HTTP CONNECT to loopback
// addresses and such as the service has been told of, for processes of this user.
//
// Close ends all processes. Where nobody is left to call it, as after a SIGKILL, the
// kernel ends them.
package local
