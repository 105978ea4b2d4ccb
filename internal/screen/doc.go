// Package screen shows the progress of a training run, and of other long work (Repeat).
//
// On a terminal the progress is one line, which is overwritten at most ten times per second
// and cut to the terminal's width. Elsewhere it is an occasional line: every second at
// first, and then less often, down to once per half minute.
//
// Other output must not be appended to the progress line, nor covered by it. Therefore a
// Terminal wraps both output streams of a process, and removes the line before it prints
// anything else.
//
// A pipe that nobody reads, or a stopped terminal, blocks writes. Release lets both streams abandon
// such writes, so that a process that was signalled can save and end.
//
// Ranks of a launcher do not see the user's terminal: mpirun gives them pipes, or a
// pseudo-terminal. The environment variable Variable has the terminal's width, and the
// process that started the launcher passes their line through.
package screen
