// Package schedule runs the tasks of a rank, with one queue, one worker per processor, and
// explicit dependencies of each task.
//
// A Task is a value: a Stage, and its epoch, layer and interval. The stages are Dorylus's
// kinds of task (OSDI'21, §3 and figure 2), some of them divided: a gather from own
// vertices can run while ghost rows are in transit.
//
// A Flow decides which task may run next, and what follows a completed task. There are two
// kinds of Flow. A Graph stores the dependencies of a whole pass and is walked again in
// every epoch, for schedules with all intervals in the same layer. Bounded asynchrony, with
// independent intervals, decides at run time. A Pool of workers runs either kind, and polls
// it for messages of other ranks when no task is ready.
//
// The package has no knowledge of graphs, tensors or messages.
package schedule
