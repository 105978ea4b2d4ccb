// Package endpoint is the data endpoint from which invoked functions fetch their tasks
// and to which they send their results (Dorylus, OSDI'21, §6). Neither is part of the
// payload of an invocation.
//
// A ticket is one attempt at one task. Expect opens a ticket and returns what the
// function needs, including a token of 130 random bits. Deliver provides the task, before
// or after the function requests it. Withdraw ends the ticket. A function fetches the task
// once and answers once; an answer counts only if its result has the ticket's name. All
// other requests are refused and counted by reason.
//
// Authentication: the endpoint uses TLS 1.3 with its own key. The function knows the
// fingerprint of the certificate, which authenticates the endpoint. The token
// authenticates the function. No other party can read a task or send a result.
//
// Limits: the bytes of stored tasks and of stored results, connections, headers, a result
// by its ticket, and the time of every read and write. Tasks and results have separate
// limits. With a common limit, waiting results could block the tasks that functions still
// have to fetch.
//
// Termination: a function waits for its task until its ticket ends, and a ticket ends with
// its lifetime. A result waits for its receiver. Deliver waits for its context or for
// Close. Requests end at their deadlines.
package endpoint
