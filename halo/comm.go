package halo

// Request is a communication under way. It is over when Test has returned true
// or Wait has returned; one of them must be called until it is, and the buffers
// given when it began belong to it until then.
type Request interface {
	// Test reports whether the communication has ended, without waiting.
	Test() (bool, error)
	// Wait returns when it has ended, or with an error when a rank is lost or
	// the communicator's deadline has passed.
	Wait() error
}

// Comm is what halo needs of a communicator.
type Comm interface {
	Rank() int
	Size() int
	// Ialltoallv begins to send sendCounts[q] bytes to each rank q and to
	// receive recvCounts[q] bytes from it. Blocks lie one after another in
	// the order of ranks, in send and in recv. Collective.
	Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (Request, error)
}
