package world

// EagerLimiter is a communicator that knows which messages are sent at once.
type EagerLimiter interface {
	// Prompt returns the maximal length in bytes of a message that is sent at once. A
	// longer message first asks the receiver, whose answer waits for its own messages. If
	// ranks send each other many long messages, each direction of a slow link is idle half
	// of the time.
	EagerLimit() int
}

// EagerLimit returns the Prompt of a communicator, 0 if it makes no difference between
// messages.
func EagerLimit(c Comm) int {
	if p, ok := c.(EagerLimiter); ok {
		return p.EagerLimit()
	}
	return 0
}
