package world

// Prompter is a communicator that knows which messages are sent at once.
type Prompter interface {
	// Prompt returns the maximal length in bytes of a message that is sent at once. A
	// longer message first asks the receiver, whose answer waits for its own messages. If
	// ranks send each other many long messages, each direction of a slow link is idle half
	// of the time.
	Prompt() int
}

// Prompt returns the Prompt of a communicator, 0 if it makes no difference between
// messages.
func Prompt(c Comm) int {
	if p, ok := c.(Prompter); ok {
		return p.Prompt()
	}
	return 0
}
