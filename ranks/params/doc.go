// Package params is where a graph rank's weights come from and where its
// gradients go: a parameter server (Client, Serve), or the graph ranks together
// (Replicated). Package protocol has what servers and ranks say to each other,
// as state machines; here it meets a world.
//
// A Source belongs to one goroutine. Replicated is collective over the graph
// ranks; a Client talks to servers alone and waits for nobody else.
package params
