package checkpoint

import (
	"encoding/binary"
	"io"
	"slices"

	"siafu/internal/wire"
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
	r := wire.Reader{Rest: b}
	for len(r.Rest) > 0 && r.Err == nil {
		parts = append(parts, slices.Clip(r.Bytes(0, len(b))))
	}
	return parts, r.Err
}
