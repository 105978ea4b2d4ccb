// Package endpoint is where invoked functions get their tasks and bring their results
// (Dorylus, OSDI'21, §6), so that neither travels in the payload of an invocation.
//
// A ticket is one attempt at one task. Expect opens it and gives what a function must
// know, with a token of 130 random bits; Deliver brings the task, before or after the
// function has come for it; Withdraw ends the ticket. A function fetches the task once
// and answers once; an answer counts whose result bears the ticket's name. Everything
// else is refused and counted, by its reason.
//
// Who may do what: TLS 1.3, with a key of this endpoint's own, whose certificate the
// function knows by its fingerprint, tells the function whom it talks to; the token
// tells the endpoint. Nobody else can read a task or bring a result.
//
// What is bounded: the bytes of tasks and those of results that are held at once,
// connections, headers, a result by its ticket, the time of every read and write.
// Tasks and results have bounds of their own, because functions that cannot get rid of
// their results would never fetch the tasks that are in the way.
//
// Why nobody waits for ever: a function waits for its task until the ticket ends, and
// a ticket ends with its life; a result takes as long as whoever takes it;
// Deliver waits for its context, or for Close; requests wait for their deadlines.
package endpoint
