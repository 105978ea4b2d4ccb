package engine

import (
	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/schedule/pipeline"
)

// Tags of messages between the stages of a pipeline. After the header they have the loss of the microbatch,
// which is 0 except from the last stage, and the rows of each value of model.Network.Crossing. Messages
// with one tag between two stages are sent in ascending order of microbatches.
const (
	tagActivations = iota + 1
	tagGradients
	tagRedundant // gradients for the shadow of the stage that computed the output
	tagProgress  // numbers of received messages, at the beginning of a resumed step
	tags

	lossBytes = 8
)

// encode appends the message with values of a microbatch.
func (p *pipelineRank) encode(b []byte, m *microbatch, values []model.Ref) []byte {
	h := wire.Message{Kind: wire.Microbatch, Numbers: wire.Numbers{p.step, m.number}, Body: m.loss()}
	b = h.Append(b)
	for _, x := range m.matrices(values) {
		b = append(b, mapped.Bytes(x.Host())...)
	}
	return b
}

// loss returns the bytes of the microbatch's loss.
func (m *microbatch) loss() []byte { return mapped.Bytes(m.work.losses[m.number : m.number+1]) }

// send begins to send values of a microbatch.
func (p *pipelineRank) send(m *microbatch, i pipeline.Instruction, tag int, values []model.Ref) error {
	if p.settings.Redundancy != pipeline.Off {
		p.retain(m, tag, p.encode(nil, m, values))
	}
	if m.number < m.work.arrived[tag] {
		return nil
	}
	return p.outbox.Send(i.Peer, tag, func(b []byte) []byte { return p.encode(b, m, values) })
}

// retain stores a message until the end of the step.
func (p *pipelineRank) retain(m *microbatch, tag int, b []byte) { m.work.sent[tag][m.number] = b }

// receive waits for values of a microbatch.
func (p *pipelineRank) receive(m *microbatch, i pipeline.Instruction, tag int, values []model.Ref) error {
	return p.t.timed(schedule.Receive, p.epoch, func() error {
		in, err := p.e.Stages.Recv(i.Peer, tag)
		if err != nil {
			return err
		}
		size := lossBytes
		for _, x := range m.matrices(values) {
			size += x.Bytes()
		}
		h, err := wire.Open("train", i.Peer, in.Data, wire.Microbatch, wire.Microbatch)
		if err != nil {
			return err
		}
		if len(h.Body) != size || h.Numbers != (wire.Numbers{p.step, m.number}) {
			return wire.Mismatch("train", "stage %d received a message of %d bytes of another microbatch for %v in step %d",
				p.stage, len(in.Data), i, p.step)
		}
		if tag == tagGradients {
			copy(m.loss(), h.Body)
		}
		m.decode(in.Data, values)
		return nil
	})
}

// decode sets values of a microbatch to those of a message.
func (m *microbatch) decode(b []byte, values []model.Ref) {
	b = b[wire.Microbatch.HeaderBytes()+lossBytes:]
	for _, x := range m.matrices(values) {
		b = b[copy(mapped.Bytes(x.Host()), b):]
	}
}

// matrices returns the microbatch's rows of values.
func (m *microbatch) matrices(values []model.Ref) (list []kernels.Mat) {
	for _, v := range values {
		list = append(list, m.template.store.Value(v).Part(0, m.rows))
	}
	return list
}
