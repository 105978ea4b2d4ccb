package safetensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"strings"
)

// checksumKey is the metadata key of the SHA-256 checksum of a file, in which the checksum itself is replaced by
// zeros. Files of other programs have none.
const checksumKey = "sha256"

var zeros = strings.Repeat("0", 2*sha256.Size)

// withChecksum returns metadata with the checksum of the file.
func withChecksum(tensors []Tensor, metadata map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, metadata)
	all[checksumKey] = zeros
	sum := sha256.New()
	_ = Stream(sum, tensors, all) // a hash accepts everything
	all[checksumKey] = hex.EncodeToString(sum.Sum(nil))
	return all
}

// verify returns an error if a file has other content than at the time of the checksum in its header, of n bytes.
func verify(b []byte, n int, checksum string) error {
	at := bytes.Index(b[:n], []byte(`"`+checksum+`"`)) + 1
	if at > 0 && len(checksum) == len(zeros) {
		sum := sha256.New()
		for _, part := range [][]byte{b[:at], []byte(zeros), b[at+len(zeros):]} {
			sum.Write(part)
		}
		if hex.EncodeToString(sum.Sum(nil)) == checksum {
			return nil
		}
	}
	return errors.New("the checksum in its metadata does not match: the file was damaged or changed")
}
