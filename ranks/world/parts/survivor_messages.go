package parts

import (
	"bytes"
	"encoding/gob"

	"siafu/internal/wire"
	"siafu/ranks/world/alive"
	"siafu/ranks/world/membership"
)

// packedState is a message with the state of a part.
type packedState struct {
	membership.State
	Data []byte
}

// receive handles a message of another rank.
func (s *survivor) receive(m alive.Message) error {
	switch m.Kind {
	case wire.Report:
		r, err := decode[membership.Report](m.Data)
		if err != nil {
			return err
		}
		s.lose(s.machine.Receive(m.From, r))
		s.decide()
	case wire.Decision:
		d, err := decode[membership.Decision](m.Data)
		if err != nil {
			return err
		}
		s.apply(d)
	case wire.PartState, wire.Copy:
		p, err := decode[packedState](m.Data)
		if err != nil {
			return err
		}
		if m.Kind == wire.Copy && s.machine.View().Rank(p.Part) == s.rank {
			return nil // late, of an earlier view
		}
		s.job.Unpack(p.State, p.Data)
		if m.Kind == wire.Copy {
			s.send(m.From, wire.Copied, p.State)
		}
		if _, awaited := s.missing[p.Part]; awaited && m.Kind == wire.PartState {
			delete(s.missing, p.Part)
			s.copyMoved(p.State)
		}
		s.changed.Broadcast()
	case wire.Copied:
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

func (s *survivor) send(to int, kind wire.Kind, x any) { s.mesh.Send(to, kind, encode(x)) }

func (s *survivor) broadcast(kind wire.Kind, x any) {
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
