package codec

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

var s2Kind = kind{
	entry:      entry{Name: "s2", Help: "numbers unchanged, compressed with S2 by byte planes"},
	compressor: &compressor{"s2", 1, func() packer { return s2Pack{} }},
	class:      lossless, auto: []string{""},
}

var zstdKind = kind{
	entry:      entry{Name: "zstd", Help: "numbers unchanged, compressed with Zstandard by byte planes: denser and slower than `s2`"},
	compressor: &compressor{"zstd", 2, sync.OnceValue(func() packer { return newZstdPack() })},
	class:      lossless, auto: []string{""},
}

// compressor is a general compressor: its name, its number in block headers, and how it is
// made.
type compressor struct {
	name string
	id   byte
	make func() packer
}

// packed compresses a codec's payloads with a general compressor. Payloads of multi-byte
// numbers are split first: all first bytes, then all second bytes, and so on, so that the
// slowly varying exponents are adjacent. A leading byte tells whether the rest is compressed
// or, where that would be longer, stored.
type packed struct {
	Codec
	*compressor
	pack    packer
	bytes   int       // of a number
	scratch sync.Pool // of *[]byte
}

// packer is a general compressor. unpack must not return more than cap(dst) bytes, nor
// allocate more.
type packer interface {
	pack(dst, src []byte) []byte
	unpack(dst, src []byte) ([]byte, error)
}

const (
	stored     = 0
	compressed = 1
)

func newPacked(c Codec, by *compressor, bytes int) Codec {
	return &packed{Codec: c, compressor: by, pack: by.make(), bytes: bytes}
}

func (c *packed) Name() string {
	if c.Codec.ID().Codec == idNone {
		return c.name
	}
	return c.Codec.Name() + "+" + c.name
}

func (c *packed) ID() ID {
	id := c.Codec.ID()
	id.Pack = c.id
	return id
}

func (c *packed) Size(rows, cols int) (int, bool) {
	n, _ := c.Codec.Size(rows, cols)
	return n + 1, false
}

// scratchBuffer returns a scratch buffer with a capacity of at least n bytes.
func (c *packed) scratchBuffer(n int) *[]byte {
	b, _ := c.scratch.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	*b = slices.Grow((*b)[:0], n)
	return b
}

func (c *packed) Encode(dst []byte, src Rows, k Key) []byte {
	size, _ := c.Codec.Size(src.Len, src.Cols)
	buffer := c.scratchBuffer(size)
	defer c.scratch.Put(buffer)
	*buffer = c.Codec.Encode(*buffer, src, k)
	plain := *buffer
	if c.bytes > 1 {
		planes := c.scratchBuffer(len(plain))
		defer c.scratch.Put(planes)
		*planes = (*planes)[:len(plain)]
		split(*planes, plain, c.bytes)
		plain = *planes
	}
	start := len(dst)
	dst = c.pack.pack(append(dst, compressed), plain)
	if len(dst)-start > len(plain) {
		dst = append(append(dst[:start], stored), *buffer...)
	}
	return dst
}

func (c *packed) Decode(dst Rows, payload []byte, add bool) error {
	if len(payload) == 0 {
		return errors.New("an empty payload")
	}
	body := payload[1:]
	switch payload[0] {
	case stored:
		return c.Codec.Decode(dst, body, add)
	case compressed:
		return c.unpack(dst, body, add)
	}
	return fmt.Errorf("unknown storage %d", payload[0])
}

func (c *packed) unpack(dst Rows, body []byte, add bool) error {
	most := maxPayload(dst.Len, dst.Cols)
	buffer := c.scratchBuffer(most)
	defer c.scratch.Put(buffer)
	plain, err := c.pack.unpack((*buffer)[:0:most], body)
	if err != nil {
		return err
	}
	if c.bytes > 1 {
		if len(plain)%c.bytes != 0 {
			return fmt.Errorf("%d unpacked bytes are not a multiple of %d bytes", len(plain), c.bytes)
		}
		whole := c.scratchBuffer(len(plain))
		defer c.scratch.Put(whole)
		*whole = (*whole)[:len(plain)]
		join(*whole, plain, c.bytes)
		plain = *whole
	}
	return c.Codec.Decode(dst, plain, add)
}

// split writes byte i of every number of raw to plane i.
func split(planes, raw []byte, bytes int) {
	n := len(raw) / bytes
	if bytes == 2 {
		p0, p1 := planes[:n], planes[n:2*n]
		for i := range n {
			b := raw[2*i : 2*i+2]
			p0[i], p1[i] = b[0], b[1]
		}
		return
	}
	p0, p1, p2, p3 := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
	for i := range n {
		b := raw[4*i : 4*i+4]
		p0[i], p1[i], p2[i], p3[i] = b[0], b[1], b[2], b[3]
	}
}

// join undoes split.
func join(raw, planes []byte, bytes int) {
	n := len(raw) / bytes
	if bytes == 2 {
		p0, p1 := planes[:n], planes[n:2*n]
		for i := range n {
			b := raw[2*i : 2*i+2]
			b[0], b[1] = p0[i], p1[i]
		}
		return
	}
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
	dst = slices.Grow(dst, most)
	return dst[:at+len(s2.Encode(dst[at:at+most], src))]
}

func (s2Pack) unpack(dst, src []byte) ([]byte, error) {
	// The length comes first in the stream. It is checked before allocation.
	n, err := s2.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > cap(dst) {
		return nil, fmt.Errorf("%d packed bytes, more than the maximum of %d", n, cap(dst))
	}
	return s2.Decode(dst[:n], src)
}

// zstdPack has an encoder and a decoder, each safe for concurrent use.
type zstdPack struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// maxUnpacked bounds the unpacked bytes of a zstd stream, whatever its header claims.
const maxUnpacked = 1 << 34

func newZstdPack() zstdPack {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("codec: zstd encoder options")
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("codec: zstd decoder options")
	}
	return zstdPack{enc, dec}
}

func (z zstdPack) pack(dst, src []byte) []byte { return z.enc.EncodeAll(src, dst) }

func (z zstdPack) unpack(dst, src []byte) ([]byte, error) {
	// The capacity is the limit: a stream that unpacks to more is an error.
	return z.dec.DecodeAll(src, dst)
}
