package world

// Prompter is a communicator that tells which messages leave at once.
type Prompter interface {
	// Prompt is how many bytes a message may have that leaves when it is sent.
	// A longer one asks the receiver first, whose answer waits behind whatever it
	// sends itself: where ranks send each other many of these, each direction of a
	// slow link is idle for half of the time.
	Prompt() int
}

// Prompt is that of a communicator, 0 where all messages are alike.
func Prompt(c Comm) int {
	if p, ok := c.(Prompter); ok {
		return p.Prompt()
	}
	return 0
}
