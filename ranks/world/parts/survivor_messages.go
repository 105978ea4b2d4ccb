package parts

import (
	"bytes"
	"encoding/gob"

	"siafu/ranks/world/alive"
	"siafu/ranks/world/membership"
)

// Kinds of messages.
const (
	reportKind   = iota
	decisionKind // of the coordinator
	stateKind    // of a part that moves
	copyKind     // of a part's state, for the shadow of its rank
	copiedKind   // confirms it
	askKind      // of a guest that is connected to all ranks
)

// packedState is a message with the state of a part.
type packedState struct {
	membership.State
	Data []byte
}

// receive handles a message of another rank.
func (s *survivor) receive(m alive.Message) error {
	switch m.Kind {
	case reportKind:
		r, err := decode[membership.Report](m.Data)
		if err != nil {
			return err
		}
		s.lose(s.machine.Receive(m.From, r))
		s.decide()
	case decisionKind:
		d, err := decode[membership.Decision](m.Data)
		if err != nil {
			return err
		}
		s.apply(d)
	case stateKind, copyKind:
		p, err := decode[packedState](m.Data)
		if err != nil {
			return err
		}
		if m.Kind == copyKind && s.machine.View().Rank(p.Part) == s.rank {
			return nil // late, of an earlier view
		}
		s.job.Unpack(p.State, p.Data)
		if m.Kind == copyKind {
			s.send(m.From, copiedKind, p.State)
		}
		if _, awaited := s.missing[p.Part]; awaited && m.Kind == stateKind {
			delete(s.missing, p.Part)
			s.copyMoved(p.State)
		}
		s.changed.Broadcast()
	case copiedKind:
		p, err := decode[membership.State](m.Data)
		if err != nil {
			return err
		}
		if m.From == s.shadow {
			s.copied[p.Part] = max(s.copied[p.Part], p.Epoch)
		}
		s.changed.Broadcast()
	}
	return nil
}

func (s *survivor) send(to int, kind byte, x any) { s.mesh.Send(to, kind, encode(x)) }

func (s *survivor) broadcast(kind byte, x any) {
	data := encode(x)
	for _, r := range s.machine.Live() {
		if r != s.rank {
			s.mesh.Send(r, kind, data)
		}
	}
}

func encode(x any) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(x); err != nil {
		panic("parts: cannot encode a message: " + err.Error())
	}
	return b.Bytes()
}

func decode[T any](data []byte) (x T, err error) {
	err = gob.NewDecoder(bytes.NewReader(data)).Decode(&x)
	return x, err
}
