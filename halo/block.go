package halo

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A block on the wire:
//
//	offset  bytes
//	0       2     magic 0x51AF
//	2       1     version, 1
//	3       1     codec
//	4       4     rows
//	8       4     columns
//	12      4     CRC-32C of the payload
//	16      8     length of the payload
//	24            payload
const (
	blockMagic   = 0x51AF
	blockVersion = 1
	blockHeader  = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeBlock appends the block of x [rows x cols] to dst.
func EncodeBlock(dst []byte, c Codec, x []float32, rows, cols int, k Key) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, blockHeader)...)
	dst = c.Encode(dst, x, rows, cols, k)
	h, payload := dst[at:at+blockHeader], dst[at+blockHeader:]
	binary.LittleEndian.PutUint16(h, blockMagic)
	h[2], h[3] = blockVersion, c.ID()
	binary.LittleEndian.PutUint32(h[4:], uint32(rows))
	binary.LittleEndian.PutUint32(h[8:], uint32(cols))
	binary.LittleEndian.PutUint32(h[12:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint64(h[16:], uint64(len(payload)))
	return dst
}

// DecodeBlock fills dst [rows x cols] from a block that must hold just that,
// made by c. Any bytes are safe: the answer is rows or an error.
func DecodeBlock(dst []float32, c Codec, rows, cols int, block []byte) error {
	if len(block) < blockHeader {
		return fmt.Errorf("%d bytes are shorter than a header", len(block))
	}
	h, payload := block[:blockHeader], block[blockHeader:]
	if m := binary.LittleEndian.Uint16(h); m != blockMagic || h[2] != blockVersion {
		return fmt.Errorf("magic %04x and version %d instead of %04x and %d", m, h[2], blockMagic, blockVersion)
	}
	if h[3] != c.ID() {
		return fmt.Errorf("codec %d instead of %d (%s)", h[3], c.ID(), c.Name())
	}
	r, k := binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:])
	if int64(r) != int64(rows) || int64(k) != int64(cols) {
		return fmt.Errorf("%d rows of %d floats instead of %d of %d", r, k, rows, cols)
	}
	if n := binary.LittleEndian.Uint64(h[16:]); n != uint64(len(payload)) {
		return fmt.Errorf("%d bytes of payload instead of %d", len(payload), n)
	}
	if got, want := crc32.Checksum(payload, castagnoli), binary.LittleEndian.Uint32(h[12:]); got != want {
		return fmt.Errorf("checksum %08x instead of %08x", got, want)
	}
	return c.Decode(dst, rows, cols, payload)
}
