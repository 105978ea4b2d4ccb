// Package screen shows how a run goes while it trains.
//
// On a terminal that is one line, which is overwritten at most ten times a second and
// cut to the terminal's width. Elsewhere it is a line now and then, by time and not by
// share: every second at first, and ever more seldom, down to one in half a minute.
//
// Words of other origin must not go on behind half a line, nor stay covered by it. So a
// Terminal hands out both of a process's streams, and takes the line away before it
// prints anything else.
//
// Ranks that a launcher started do not see the terminal that their words go to: mpirun
// gives them pipes, or a terminal of their own that is nobody's. Variable tells them how
// wide it is, and the process that started the launcher passes their line through.
package screen
