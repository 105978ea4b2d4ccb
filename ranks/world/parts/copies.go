package parts

import (
	"siafu/internal/wire"
	"siafu/ranks/world/membership"
)

// A survivor sends the states of its parts to another rank, its shadow (membership.Machine.Shadow): after an
// epoch (copyState), when a part has moved here (copyMoved), and when the shadow is lost (replicate). The
// shadow stores a copy among its own states and reports it like these, so that a decision may continue
// from it.

// copyState sends the state of a part to the shadow, and waits until the shadow has confirmed the one
// before. So a part and its copy have a state of the same epoch.
func (s *survivor) copyState(at membership.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shadow < 0 {
		return
	}
	before := s.sent[at.Part]
	s.sent[at.Part] = at.Epoch
	s.send(s.shadow, wire.Copy, packedState{at, s.job.Pack(at)})
	for to := s.shadow; s.shadow == to && s.failed == nil && !s.interrupted() && s.copied[at.Part] < before; {
		s.changed.Wait()
	}
}

// copyMoved sends the state of a part that has moved here to the shadow. Without the copy, the loss of
// this rank in its first epoch with the part would lose the part.
func (s *survivor) copyMoved(at membership.State) {
	if s.shadow >= 0 {
		s.send(s.shadow, wire.Copy, packedState{at, s.job.Pack(at)})
	}
}

// replicate chooses a new shadow if the old one is lost, and sends it the states of the parts here.
func (s *survivor) replicate() {
	shadow := s.machine.Shadow()
	if shadow == s.shadow {
		return
	}
	s.shadow = shadow
	clear(s.copied)
	clear(s.sent)
	v := s.machine.View()
	for _, at := range s.job.States() {
		if s.shadow >= 0 && v.Rank(at.Part) == s.rank {
			s.send(s.shadow, wire.Copy, packedState{at, s.job.Pack(at)})
		}
	}
}
