package worldtest

import (
	"fmt"
	"runtime"

	"siafu/ranks/world"
)

var messages = []check{
	{"MessageLengths", messageLengths},
	{"MessageOrder", messageOrder},
	{"MessageTags", messageTags},
	{"TryRecv", tryRecv},
	{"ManySenders", manySenders},
	{"Irecv", irecv},
}

// messageLengths sends messages of all lengths to all ranks, itself included.
func messageLengths(c world.Comm) error {
	for which, n := range lengths {
		sends := make([]world.Request, c.Size())
		for q := range sends {
			var err error
			if sends[q], err = c.Isend(pattern(n, c.Rank(), q, which), q, which); err != nil {
				return err
			}
		}
		for range sends {
			m, err := c.Recv(world.Any, which)
			if err != nil {
				return err
			}
			if m.Tag != which {
				return fmt.Errorf("got tag %d, want %d", m.Tag, which)
			}
			if err := same(fmt.Sprintf("from %d", m.Source), m.Data, pattern(n, m.Source, c.Rank(), which)); err != nil {
				return err
			}
		}
		if err := finishAll(sends); err != nil {
			return err
		}
	}
	return nil
}

// messageOrder tests that messages of one source and tag stay in order at different lengths, and
// that their memory belongs to the receiver.
func messageOrder(c world.Comm) error {
	const rounds = 60
	to, from := neighbours(c)
	var sends []world.Request
	for i := range rounds {
		s, err := c.Isend(pattern(1+lengths[i%len(lengths)], c.Rank(), to, i), to, 5)
		if err != nil {
			return err
		}
		sends = append(sends, s)
	}
	for i := range rounds {
		source, tag := from, 5
		if i%2 == 1 { // no other rank sends, so that Any is equivalent
			source, tag = world.Any, world.Any
		}
		m, err := c.Recv(source, tag)
		if err != nil {
			return err
		}
		if err := same(fmt.Sprintf("message %d", i), m.Data, pattern(1+lengths[i%len(lengths)], from, c.Rank(), i)); err != nil {
			return err
		}
		clear(m.Data)
	}
	return finishAll(sends)
}

// messageTags receives by tag, in the reverse order of sending.
func messageTags(c world.Comm) error {
	tags := []int{0, 1, 500, world.MaxTag}
	to, from := neighbours(c)
	var sends []world.Request
	for _, tag := range tags {
		s, err := c.Isend(pattern(100, c.Rank(), to, tag), to, tag)
		if err != nil {
			return err
		}
		sends = append(sends, s)
	}
	for i := len(tags) - 1; i >= 0; i-- {
		source := world.Any
		if i%2 == 0 {
			source = from
		}
		m, err := c.Recv(source, tags[i])
		if err != nil {
			return err
		}
		if m.Source != from || m.Tag != tags[i] {
			return fmt.Errorf("got source %d and tag %d, want %d and %d", m.Source, m.Tag, from, tags[i])
		}
		if err := same("message", m.Data, pattern(100, from, c.Rank(), tags[i])); err != nil {
			return err
		}
	}
	return finishAll(sends)
}

// tryRecv tests that TryRecv finds exactly the messages that were sent.
func tryRecv(c world.Comm) error {
	if _, ok, err := c.TryRecv(world.Any, world.Any); ok || err != nil {
		return fmt.Errorf("TryRecv found a message that nobody sent (error %v)", err)
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	to, from := neighbours(c)
	big := lengths[len(lengths)-1]
	s, err := c.Isend(pattern(big, c.Rank(), to, 1), to, 9)
	if err != nil {
		return err
	}
	if _, ok, err := c.TryRecv(from, 8); ok || err != nil {
		return fmt.Errorf("TryRecv took a message with another tag (error %v)", err)
	}
	for ok := false; !ok; runtime.Gosched() {
		var m world.Message
		if m, ok, err = c.TryRecv(from, world.Any); err != nil {
			return err
		}
		if ok {
			err = same("message", m.Data, pattern(big, from, c.Rank(), 1))
		}
	}
	if err != nil {
		return err
	}
	return s.Wait()
}

// irecv receives messages of all lengths from all ranks into buffers, begun in the reverse order
// of sending.
func irecv(c world.Comm) error {
	for which, n := range lengths {
		var under []world.Request
		var got [][]byte
		var intact []func() error
		for i := range c.Size() {
			q := c.Size() - 1 - i
			buf, whole := guarded(n)
			r, err := world.Irecv(c, buf, q, which)
			if err != nil {
				return err
			}
			under, got, intact = append(under, r), append(got, buf), append(intact, whole)
		}
		for q := range c.Size() {
			s, err := c.Isend(pattern(n, c.Rank(), q, which), q, which)
			if err != nil {
				return err
			}
			under = append(under, s)
		}
		if err := finishAll(under); err != nil {
			return err
		}
		for i, buf := range got {
			if err := same("message", buf, pattern(n, c.Size()-1-i, c.Rank(), which)); err != nil {
				return err
			}
			if err := intact[i](); err != nil {
				return err
			}
		}
	}
	return nil
}

// manySenders tests that messages of concurrent goroutines, with one tag each, arrive exactly once
// and in order per tag.
func manySenders(c world.Comm) error {
	const senders, each = 4, 50
	var work []func() error
	for tag := range senders {
		work = append(work, func() error { return sendMany(c, tag, each) })
	}
	for tag := range senders {
		work = append(work, func() error { return receiveMany(c, tag, each) })
	}
	return together(work...)
}

// sendMany sends n messages to each rank, all concurrently.
func sendMany(c world.Comm, tag, n int) error {
	var under []world.Request
	for i := range n {
		for q := range c.Size() {
			s, err := c.Isend(pattern(1+i*i, c.Rank(), q, i), q, tag)
			if err != nil {
				return err
			}
			under = append(under, s)
		}
	}
	return finishAll(under)
}

// receiveMany receives n messages from each rank.
func receiveMany(c world.Comm, tag, n int) error {
	next := make([]int, c.Size()) // number of each source's next message
	for range n * c.Size() {
		m, err := c.Recv(world.Any, tag)
		if err != nil {
			return err
		}
		i := next[m.Source]
		next[m.Source]++
		if err := same(fmt.Sprintf("message %d of %d", i, m.Source), m.Data, pattern(1+i*i, m.Source, c.Rank(), i)); err != nil {
			return err
		}
	}
	return nil
}
