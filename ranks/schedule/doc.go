// Package schedule runs the tasks of a rank: one queue, one worker a processor,
// and for each task an explicit statement of what it waits for.
//
// A Task is a value: what it does (Stage), and the epoch, layer and interval
// that it does it on. The stages are Dorylus's kinds of task (OSDI'21, §3 and
// figure 2), some of them in parts: a gather from own vertices can run while
// rows of ghosts travel.
//
// A Flow says which task may run next and what follows when one has run. There
// are two ways to make one. A Graph holds the dependencies of a whole pass and
// is walked again in every epoch, for schedules in which all intervals are in
// the same layer; and bounded asynchrony, where intervals go their own ways,
// decides as it goes. A Pool of workers runs either, and asks it about other
// ranks when there is nothing to run.
//
// The package knows nothing of graphs, tensors or messages.
package schedule
