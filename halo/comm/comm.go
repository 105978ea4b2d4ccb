package comm

// Request is a communication in transit. It ends when Test returns true or Wait returns. One
// of them must be called until then, and the buffers belong to the request until then.
type Request interface {
	// Test reports whether the communication has ended, without waiting.
	Test() (bool, error)
	// Wait returns when it has ended, or with an error when a rank fails or the communicator's
	// deadline has passed.
	Wait() error
}

// Message is a received message.
type Message struct {
	Source, Tag int
	Data        []byte // belongs to the receiver
}

// Comm is a communicator as an exchange needs it.
type Comm interface {
	Rank() int
	Size() int
	// Ialltoallv begins to send sendCounts[q] bytes to each rank q and to
	// receive recvCounts[q] bytes from it. Blocks lie one after another in
	// the order of ranks, in send and in recv. Collective.
	Ialltoallv(send []byte, sendCounts []int, recv []byte, recvCounts []int) (Request, error)
	// Isend begins to send buf to rank dst. Tags are 0..32767.
	Isend(buf []byte, dst, tag int) (Request, error)
	// Recv waits for the next message from src (or any: -1) with tag (or any).
	// Messages from one rank with one tag arrive in the order of sending.
	Recv(src, tag int) (Message, error)
	// TryRecv receives like Recv, but does not wait; ok reports whether there was a message.
	TryRecv(src, tag int) (m Message, ok bool, err error)
}

// Aware is a Comm whose Ialltoallv may take memory of a device.
type Aware interface {
	Comm
	// DeviceMemory reports whether the communicator sends and receives the given number of
	// bytes directly in the memory of this process's device.
	DeviceMemory(bytes int) bool
}

// Outbox sends messages without waiting for them to leave. Several goroutines may
// use it at once.
type Outbox interface {
	// Buffer returns empty memory for a message.
	Buffer() ([]byte, error)
	// Post begins to send b, which belongs to the outbox from then on.
	Post(b []byte, to, tag int) error
}
