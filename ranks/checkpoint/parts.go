package checkpoint

import (
	"encoding/binary"
	"errors"
	"io"
)

// parts.bin contains, for each part in order, the length of its state as 8 bytes, little-endian,
// and the state.

func writeParts(to io.Writer, parts [][]byte) error {
	for _, b := range parts {
		if err := binary.Write(to, binary.LittleEndian, uint64(len(b))); err != nil {
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
