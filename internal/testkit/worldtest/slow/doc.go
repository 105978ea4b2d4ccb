// Package slow delays the messages of a world as a cluster's network would, so that a test in one
// process can measure its effect.
//
// A Network has hosts. Each host has a link with a rate in each direction, which all its traffic
// shares, and there is a latency between hosts. A message takes the time of both links, in the
// order of sending. Messages within a host take no time.
package slow
