package runfolder

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// scalar is a named number of a step. TensorBoard groups scalars by the part of the name before
// the slash.
type scalar struct {
	Name  string
	Value float64
}

// eventWriter writes an event file, which TensorBoard reads: records of the TFRecord format, each an
// Event of TensorFlow's event.proto with a Summary of scalars. Each record is written as a whole.
//
//	uint64 length, little-endian
//	uint32 masked CRC-32C of the length
//	byte   data[length]
//	uint32 masked CRC-32C of the data
type eventWriter struct {
	w      io.Writer
	record []byte
	value  []byte
}

// newEventWriter starts an event file with the record of its format version.
func newEventWriter(w io.Writer) (*eventWriter, error) {
	e := &eventWriter{w: w}
	e.begin(time.Now(), 0)
	e.record = appendText(e.record, eventVersion, "brain.Event:2")
	return e, e.end()
}

// Field numbers of the messages Event, Summary and Summary.Value.
const (
	eventTime    = 1 // double, seconds since 1970
	eventStep    = 2 // int64
	eventVersion = 3 // string
	eventSummary = 5 // Summary
	summaryValue = 1 // Value
	valueTag     = 1 // string
	valueSimple  = 2 // float
)

// Wire types of fields.
const (
	wireVarint  = 0
	wireEight   = 1 // bytes
	wireCounted = 2 // length, then bytes
	wireFour    = 5 // bytes
)

// Write writes the scalars of a step.
func (e *eventWriter) Write(at time.Time, step int64, scalars []scalar) error {
	e.begin(at, step)
	var summary []byte
	for _, s := range scalars {
		e.value = appendText(e.value[:0], valueTag, s.Name)
		e.value = binary.LittleEndian.AppendUint32(appendKey(e.value, valueSimple, wireFour), math.Float32bits(float32(s.Value)))
		summary = appendText(summary, summaryValue, string(e.value))
	}
	e.record = appendText(e.record, eventSummary, string(summary))
	return e.end()
}

// recordHeader is the number of bytes of a record's length and its checksum.
const recordHeader = 12

// begin starts a record with the time and the step of its event.
func (e *eventWriter) begin(at time.Time, step int64) {
	e.record = append(e.record[:0], make([]byte, recordHeader)...)
	seconds := float64(at.UnixMicro()) / 1e6
	e.record = binary.LittleEndian.AppendUint64(appendKey(e.record, eventTime, wireEight), math.Float64bits(seconds))
	e.record = binary.AppendUvarint(appendKey(e.record, eventStep, wireVarint), uint64(step))
}

// end adds the checksums and writes the record.
func (e *eventWriter) end() error {
	data := e.record[recordHeader:]
	binary.LittleEndian.PutUint64(e.record, uint64(len(data)))
	binary.LittleEndian.PutUint32(e.record[8:], maskedSum(e.record[:8]))
	e.record = binary.LittleEndian.AppendUint32(e.record, maskedSum(data))
	_, err := e.w.Write(e.record)
	return err
}

// appendKey appends the number and the wire type of a field.
func appendKey(b []byte, field, kind uint64) []byte { return binary.AppendUvarint(b, field<<3|kind) }

// appendText appends a field of type string or message.
func appendText(b []byte, field uint64, s string) []byte {
	b = binary.AppendUvarint(appendKey(b, field, wireCounted), uint64(len(s)))
	return append(b, s...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedSum returns the masked CRC-32C of b: rotated by 15 bits, plus a constant. The mask
// protects checksums of data that contains checksums (TensorFlow, lib/hash/crc32c.h).
func maskedSum(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}
