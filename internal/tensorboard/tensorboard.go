// Package tensorboard writes event files, which TensorBoard reads: records of the TFRecord
// format, each an Event of TensorFlow's event.proto with a Summary of scalars.
//
//	uint64 length, little-endian
//	uint32 masked CRC-32C of the length
//	byte   data[length]
//	uint32 masked CRC-32C of the data
package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// Scalar is a named number of a step. TensorBoard groups scalars by the part of the name before
// the slash.
type Scalar struct {
	Name  string
	Value float64
}

// Writer writes an event file. Each record is written as a whole.
type Writer struct {
	w      io.Writer
	record []byte
	value  []byte
}

// NewWriter starts an event file with the record of its format version.
func NewWriter(w io.Writer) (*Writer, error) {
	e := &Writer{w: w}
	e.begin(time.Now(), 0)
	e.record = str(e.record, eventVersion, "brain.Event:2")
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
	varint  = 0
	eight   = 1 // bytes
	counted = 2 // length, then bytes
	four    = 5 // bytes
)

// Write writes the scalars of a step.
func (e *Writer) Write(at time.Time, step int64, scalars []Scalar) error {
	e.begin(at, step)
	var summary []byte
	for _, s := range scalars {
		e.value = str(e.value[:0], valueTag, s.Name)
		e.value = binary.LittleEndian.AppendUint32(key(e.value, valueSimple, four), math.Float32bits(float32(s.Value)))
		summary = str(summary, summaryValue, string(e.value))
	}
	e.record = str(e.record, eventSummary, string(summary))
	return e.end()
}

// header is the number of bytes of a record's length and its checksum.
const header = 12

// begin starts a record with the time and the step of its event.
func (e *Writer) begin(at time.Time, step int64) {
	e.record = append(e.record[:0], make([]byte, header)...)
	seconds := float64(at.UnixMicro()) / 1e6
	e.record = binary.LittleEndian.AppendUint64(key(e.record, eventTime, eight), math.Float64bits(seconds))
	e.record = binary.AppendUvarint(key(e.record, eventStep, varint), uint64(step))
}

// end adds the checksums and writes the record.
func (e *Writer) end() error {
	data := e.record[header:]
	binary.LittleEndian.PutUint64(e.record, uint64(len(data)))
	binary.LittleEndian.PutUint32(e.record[8:], masked(e.record[:8]))
	e.record = binary.LittleEndian.AppendUint32(e.record, masked(data))
	_, err := e.w.Write(e.record)
	return err
}

// key appends the number and the wire type of a field.
func key(b []byte, field, kind uint64) []byte { return binary.AppendUvarint(b, field<<3|kind) }

// str appends a field of type string or message.
func str(b []byte, field uint64, s string) []byte {
	b = binary.AppendUvarint(key(b, field, counted), uint64(len(s)))
	return append(b, s...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the masked CRC-32C of b: rotated by 15 bits, plus a constant. The mask
// protects checksums of data that contains checksums (TensorFlow, lib/hash/crc32c.h).
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}
