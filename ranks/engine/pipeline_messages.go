package engine

import (
	"encoding/binary"
	"math"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/schedule"
	"siafu/ranks/schedule/pipeline"
)

// Messages between the stages of a pipeline have a tag and the values of a microbatch, row after row:
//
//	step        uint32, from 1
//	microbatch  uint32
//	loss        float64: of the microbatch, from the last stage; else 0
//	values      float32 [rows x columns] of each value of model.Network.Crossing
//
// Each kind of message between two stages is sent in ascending order of microbatches.
const (
	tagActivations = iota + 1
	tagGradients
	tagRedundant // gradients for the shadow of the stage that computed the output
	tagProgress  // numbers of received messages, at the beginning of a resumed step
	tags

	pipelineHeader = 16
)

// encode appends the message with values of a microbatch.
func (p *pipelineRank) encode(b []byte, m *microbatch, values []model.Ref) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(p.step))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.number))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(m.work.losses[m.number]))
	for _, x := range m.matrices(values) {
		b = append(b, mapped.Bytes(x.Host())...)
	}
	return b
}

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
		list, size := m.matrices(values), pipelineHeader
		for _, x := range list {
			size += x.Bytes()
		}
		b := in.Data
		if len(b) != size || binary.LittleEndian.Uint32(b) != uint32(p.step) || binary.LittleEndian.Uint32(b[4:]) != uint32(m.number) {
			return p.misplaced(i, len(b))
		}
		if tag == tagGradients {
			m.work.losses[m.number] = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
		}
		m.decode(b, values)
		return nil
	})
}

// decode sets values of a microbatch to those of a message.
func (m *microbatch) decode(b []byte, values []model.Ref) {
	b = b[pipelineHeader:]
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
