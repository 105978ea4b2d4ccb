package halo

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"siafu/graph/mapped"
)

func bytesOf(x []float32) []byte { return mapped.Bytes(x) }

// shuffled is a lossless codec: the first bytes of all floats, then all second
// bytes and so on, so that the slowly varying exponents stand together, behind
// a general compressor. One byte in front says whether the rest is compressed
// or, where that would be longer, stored.
type shuffled struct {
	id      byte
	name    string
	pack    packer
	scratch sync.Pool // of *[]byte
}

// packer is a general compressor. unpack must not return more than size bytes.
type packer interface {
	pack(dst, src []byte) []byte
	unpack(dst, src []byte, size int) ([]byte, error)
}

const (
	stored     = 0
	compressed = 1
)

func (c *shuffled) ID() byte       { return c.id }
func (c *shuffled) Name() string   { return c.name }
func (c *shuffled) Lossless() bool { return true }

// room is a scratch buffer of n bytes and what gives it back.
func (c *shuffled) room(n int) ([]byte, func()) {
	b, _ := c.scratch.Get().(*[]byte)
	if b == nil || cap(*b) < n {
		fresh := make([]byte, n)
		b = &fresh
	}
	*b = (*b)[:n]
	return *b, func() { c.scratch.Put(b) }
}

func (c *shuffled) Encode(dst []byte, x []float32, rows, cols int, _ Key) []byte {
	raw := bytesOf(x[:rows*cols])
	planes, release := c.room(len(raw))
	defer release()
	split(planes, raw)
	start := len(dst)
	dst = c.pack.pack(append(dst, compressed), planes)
	if len(dst)-start > len(raw) {
		dst = append(append(dst[:start], stored), raw...)
	}
	return dst
}

func (c *shuffled) Decode(dst []float32, rows, cols int, payload []byte) error {
	raw := bytesOf(dst[:rows*cols])
	if len(payload) == 0 {
		return errors.New("an empty payload")
	}
	body := payload[1:]
	switch payload[0] {
	case stored:
		if len(body) != len(raw) {
			return fmt.Errorf("%d stored bytes for %d rows of %d floats", len(body), rows, cols)
		}
		copy(raw, body)
		return nil
	case compressed:
		room, release := c.room(len(raw))
		defer release()
		planes, err := c.pack.unpack(room[:0], body, len(raw))
		if err != nil {
			return err
		}
		if len(planes) != len(raw) {
			return fmt.Errorf("%d unpacked bytes for %d rows of %d floats", len(planes), rows, cols)
		}
		join(raw, planes)
		return nil
	}
	return fmt.Errorf("unknown storage %d", payload[0])
}

// split writes byte i of every float of raw to plane i.
func split(planes, raw []byte) {
	n := len(raw) / 4
	p0, p1, p2, p3 := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
	for i := range n {
		b := raw[4*i : 4*i+4]
		p0[i], p1[i], p2[i], p3[i] = b[0], b[1], b[2], b[3]
	}
}

// join undoes split.
func join(raw, planes []byte) {
	n := len(raw) / 4
	p0, p1, p2, p3 := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
	for i := range n {
		b := raw[4*i : 4*i+4]
		b[0], b[1], b[2], b[3] = p0[i], p1[i], p2[i], p3[i]
	}
}

type s2Pack struct{}

func (s2Pack) pack(dst, src []byte) []byte {
	at := len(dst)
	most := s2.MaxEncodedLen(len(src))
	if cap(dst)-at < most {
		dst = append(make([]byte, 0, at+most), dst...)
	}
	return dst[:at+len(s2.Encode(dst[at:at+most], src))]
}

func (s2Pack) unpack(dst, src []byte, size int) ([]byte, error) {
	// The length comes first in the stream: it is checked before anything is
	// made of it.
	n, err := s2.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("%d packed bytes where %d are expected", n, size)
	}
	return s2.Decode(dst[:size], src)
}

// zstdPack holds one encoder and one decoder, both safe for concurrent use.
type zstdPack struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// maxUnpacked bounds what a zstd stream may unpack to, whatever it announces.
const maxUnpacked = 1 << 34

func newZstdPack() zstdPack {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("halo: zstd encoder options")
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("halo: zstd decoder options")
	}
	return zstdPack{enc, dec}
}

func (z zstdPack) pack(dst, src []byte) []byte { return z.enc.EncodeAll(src, dst) }

func (z zstdPack) unpack(dst, src []byte, size int) ([]byte, error) {
	// The capacity is the limit: a stream that unpacks to more is an error.
	return z.dec.DecodeAll(src, dst[:0:size])
}
