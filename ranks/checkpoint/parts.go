package checkpoint

import (
	"encoding/binary"
	"errors"
	"io"
)

// parts.bin, numbers little-endian: for each part, in their order, the length of what
// it knows in 8 bytes, and that.

func writeParts(to io.Writer, parts [][]byte) error {
	for _, b := range parts {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(b)))
		if _, err := to.Write(length[:]); err != nil {
			return err
		}
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func readParts(b []byte) (parts [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, errors.New("truncated within a length")
		}
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n > uint64(len(b)) {
			return nil, errors.New("truncated within a part")
		}
		parts, b = append(parts, b[:n:n]), b[n:]
	}
	return parts, nil
}
