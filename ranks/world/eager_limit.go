package world

// EagerLimiter is a communicator with an eager protocol for short messages.
type EagerLimiter interface {
	// EagerLimit returns the maximal length in bytes of a message that is sent at once. A
	// longer message first needs a handshake, and the receiver's reply waits for its own
	// messages. If ranks exchange many long messages, each direction of a slow link is idle
	// half of the time.
	EagerLimit() int
}

// EagerLimit returns the eager limit of a communicator, 0 if it has none.
func EagerLimit(c Comm) int {
	if p, ok := c.(EagerLimiter); ok {
		return p.EagerLimit()
	}
	return 0
}
