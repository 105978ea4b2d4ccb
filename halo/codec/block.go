package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// A block on the wire, numbers little-endian:
//
//	offset  bytes
//	0       2     magic 0x51AF
//	2       1     version, 3
//	3       1     codec
//	4       1     its parameter
//	5       1     compressor: 0 none, 1 s2, 2 zstd
//	6       2     zero
//	8       4     rows
//	12      4     columns
//	16      4     number of the first row in the message
//	20      4     CRC-32C of all other bytes
//	24      8     length of the payload
//	32            payload
const (
	blockMagic   = 0x51AF
	blockVersion = 3
	// BlockHeader is the length of a block without its payload, in bytes.
	BlockHeader = 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeBlock appends the block of src, the rows of a message from row first on. residual,
// unless it is nil, has the accumulated encoding errors of these rows (received minus intended).
// They are subtracted from src, and replaced by the new errors.
func EncodeBlock(dst []byte, c Codec, src Rows, first int, k Key, residual Feedback) []byte {
	if residual == nil {
		return EncodeWithFeedback(dst, c, src, first, k, Rows{})
	}
	return EncodeWithFeedback(dst, c, src, first, k, Rows{X: residual[:src.Len*src.Cols], Cols: src.Cols, Len: src.Len})
}

// EncodeWithFeedback encodes a block like EncodeBlock, with the accumulated encoding errors of row
// i of src in row i of residual. If residual has no columns, it has no effect.
func EncodeWithFeedback(dst []byte, c Codec, src Rows, first int, k Key, residual Rows) []byte {
	at := len(dst)
	size, _ := c.Size(src.Len, src.Cols)
	dst = slices.Grow(dst, BlockHeader+size)[:at+BlockHeader]
	if residual.Cols > 0 {
		dst = feedBack(dst, c, src, k, residual)
	} else {
		dst = c.Encode(dst, src, k)
	}
	Seal(dst[at:], c, src.Len, src.Cols, first)
	return dst
}

// Seal writes the header of a block whose payload c has encoded from rows x cols numbers,
// the rows of a message from row first on.
func Seal(block []byte, c Codec, rows, cols, first int) {
	h, id := block[:BlockHeader], c.ID()
	binary.LittleEndian.PutUint16(h, blockMagic)
	h[2], h[3], h[4], h[5], h[6], h[7] = blockVersion, id.Codec, id.Param, id.Pack, 0, 0
	binary.LittleEndian.PutUint32(h[8:], uint32(rows))
	binary.LittleEndian.PutUint32(h[12:], uint32(cols))
	binary.LittleEndian.PutUint32(h[16:], uint32(first))
	binary.LittleEndian.PutUint64(h[24:], uint64(len(block)-BlockHeader))
	binary.LittleEndian.PutUint32(h[20:], checksum(block))
}

// checksum returns the checksum of block, except its checksum field.
func checksum(block []byte) uint32 {
	return crc32.Update(crc32.Checksum(block[:20], castagnoli), castagnoli, block[24:])
}

// Block is a block with a verified header.
type Block struct {
	First, Rows, Cols int
	payload           []byte
}

// Open verifies the header and the checksum of b, which c must have encoded.
func Open(b []byte, c Codec) (Block, error) {
	if len(b) < BlockHeader {
		return Block{}, fmt.Errorf("%d bytes, shorter than a header", len(b))
	}
	h, payload, id := b[:BlockHeader], b[BlockHeader:], c.ID()
	if m := binary.LittleEndian.Uint16(h); m != blockMagic || h[2] != blockVersion {
		return Block{}, fmt.Errorf("magic %04x and version %d, want %04x and %d", m, h[2], blockMagic, blockVersion)
	}
	if got := (ID{h[3], h[4], h[5]}); got != id {
		return Block{}, fmt.Errorf("codec %v, want %v (%s)", got, id, c.Name())
	}
	if h[6]|h[7] != 0 {
		return Block{}, errors.New("reserved bytes of the header are not zero")
	}
	if n := binary.LittleEndian.Uint64(h[24:]); n != uint64(len(payload)) {
		return Block{}, fmt.Errorf("%d bytes of payload, want %d", len(payload), n)
	}
	if got, want := checksum(b), binary.LittleEndian.Uint32(h[20:]); got != want {
		return Block{}, fmt.Errorf("checksum %08x, want %08x", got, want)
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(h[at:])) }
	return Block{First: number(16), Rows: number(8), Cols: number(12), payload: payload}, nil
}

// Decode decodes the block into dst, which must have the block's number of rows and
// columns.
func (b Block) Decode(c Codec, dst Rows, add bool) error {
	if b.Rows != dst.Len || b.Cols != dst.Cols {
		return fmt.Errorf("%d rows of %d floats, want %d rows of %d", b.Rows, b.Cols, dst.Len, dst.Cols)
	}
	return c.Decode(dst, b.payload, add)
}
