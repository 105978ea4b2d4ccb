package runfolder_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"siafu/graph/generate"
	"siafu/ranks"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// The reader below is independent of the writer: it was written from the descriptions of
// the TFRecord format, of CRC-32C (RFC 3720, appendix B.4) and of protobuf's wire format.
// TensorBoard's own reader is no Go.

// crc32c returns the checksum bit by bit.
func crc32c(b []byte) uint32 {
	sum := ^uint32(0)
	for _, x := range b {
		sum ^= uint32(x)
		for range 8 {
			if sum&1 == 1 {
				sum = sum>>1 ^ 0x82f63b78
			} else {
				sum >>= 1
			}
		}
	}
	return ^sum
}

// unmasked returns the checksum of a masked one.
func unmasked(x uint32) uint32 {
	x -= 0xa282ead8
	return x>>17 | x<<15
}

// records returns the records of a file.
func records(b []byte) ([][]byte, error) {
	var list [][]byte
	for len(b) > 0 {
		if len(b) < 12 {
			return nil, io.ErrUnexpectedEOF
		}
		n := binary.LittleEndian.Uint64(b)
		if got := unmasked(binary.LittleEndian.Uint32(b[8:])); got != crc32c(b[:8]) {
			return nil, fmt.Errorf("record %d: checksum of its length is %x", len(list), got)
		}
		if uint64(len(b)) < 12+n+4 {
			return nil, io.ErrUnexpectedEOF
		}
		data := b[12 : 12+n]
		if got := unmasked(binary.LittleEndian.Uint32(b[12+n:])); got != crc32c(data) {
			return nil, fmt.Errorf("record %d: checksum of its data is %x", len(list), got)
		}
		list, b = append(list, data), b[12+n+4:]
	}
	return list, nil
}

// field is a field of a message: a number, or bytes.
type field struct {
	number uint64
	bits   uint64
	bytes  []byte
}

// fields returns the fields of a message.
func fields(t *testing.T, b []byte) (list []field) {
	t.Helper()
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("a damaged varint")
		}
		b = b[n:]
		return v
	}
	take := func(n uint64) []byte {
		if uint64(len(b)) < n {
			t.Fatal("a field is cut off")
		}
		data := b[:n]
		b = b[n:]
		return data
	}
	for len(b) > 0 {
		key := number()
		f := field{number: key >> 3}
		switch key & 7 {
		case 0:
			f.bits = number()
		case 1:
			f.bits = binary.LittleEndian.Uint64(take(8))
		case 2:
			f.bytes = take(number())
		case 5:
			f.bits = uint64(binary.LittleEndian.Uint32(take(4)))
		default:
			t.Fatalf("wire type %d", key&7)
		}
		list = append(list, f)
	}
	return list
}

// event is an event that was read.
type event struct {
	seconds float64
	step    int64
	version string
	scalars map[string]float32
}

// read reads an event file.
func read(t *testing.T, path string) (events []event) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := records(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		e := event{scalars: map[string]float32{}}
		for _, f := range fields(t, r) {
			switch f.number {
			case 1:
				e.seconds = math.Float64frombits(f.bits)
			case 2:
				e.step = int64(f.bits)
			case 3:
				e.version = string(f.bytes)
			case 5:
				for _, v := range fields(t, f.bytes) {
					value := fields(t, v.bytes)
					if len(value) != 2 || value[0].number != 1 || value[1].number != 2 {
						t.Fatalf("a value of %d fields", len(value))
					}
					e.scalars[string(value[0].bytes)] = math.Float32frombits(uint32(value[1].bits))
				}
			}
		}
		events = append(events, e)
	}
	return events
}

// The checksum of the reader is the one of RFC 3720.
func TestChecksum(t *testing.T) {
	if got := crc32c(make([]byte, 32)); got != 0x8a9136aa {
		t.Errorf("%x", got)
	}
}

// configured is train's configuration for flags.
func configured(t *testing.T, flags ...string) ranks.Config {
	t.Helper()
	var g struct {
		Config ranks.Config `embed:""`
	}
	err := config.Parse(&g, "tensorboard", flags...)
	if err != nil {
		t.Fatal(err)
	}
	return g.Config
}

// A run writes the numbers of metrics.jsonl with their times, and a resumed run has each epoch
// once.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	data, out := filepath.Join(dir, "data"), filepath.Join(dir, "run")
	if _, err := generate.Write(data,
		generate.Options{Vertices: 200, Edges: 1200, Features: 6, Classes: 3, Seed: 1, Scale: 1}, false); err != nil {
		t.Fatal(err)
	}
	for _, epochs := range []string{"5", "9"} {
		c := configured(t, "--tensorboard", "--epochs", epochs, "--hidden", "4", "--ranks", "2", "--eval-every", "2",
			"--out", out, "--resume", "auto")
		if err := ranks.Train(context.Background(), c, data, ranks.IO{Out: io.Discard, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		lines, err := runfolder.ReadEpochs(out)
		if err != nil {
			t.Fatal(err)
		}
		events := read(t, filepath.Join(out, "events.out.tfevents.siafu"))
		if len(events) != len(lines)+1 || events[0].version != "brain.Event:2" || fmt.Sprint(len(lines)) != epochs {
			t.Fatalf("%d events of %d epochs, %+v", len(events), len(lines), events[0])
		}
		for i, l := range lines {
			compare(t, events[i+1], l)
		}
	}
}

// compare holds an event against a line; a scalar has the precision of float32.
func compare(t *testing.T, e event, l runfolder.Epoch) {
	t.Helper()
	if e.step != int64(l.Epoch) || math.Abs(e.seconds-float64(l.Time.UnixMilli())/1e3) > 1e-6 {
		t.Errorf("step %d at %f, want %d at %v", e.step, e.seconds, l.Epoch, l.Time)
	}
	want := map[string]float64{"loss/train": l.Loss, "seconds/epoch": l.Seconds, "ghosts/bytes_sent": float64(l.GhostBytesSent),
		"task_seconds/GA": l.TaskSeconds["GA"]}
	if l.ValAcc != nil {
		want["accuracy/val"], want["loss/val"] = *l.ValAcc, *l.ValLoss
	} else if _, has := e.scalars["accuracy/val"]; has {
		t.Errorf("epoch %d was not evaluated", l.Epoch)
	}
	for name, v := range want {
		if got, has := e.scalars[name]; !has || got != float32(v) {
			t.Errorf("epoch %d: %s is %g, want %g", l.Epoch, name, got, v)
		}
	}
}
