package scratch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"os"
	"strings"
)

// infix separates the final name from the id.
const infix = ".tmp-"

// Suffix is a regular expression for the part after the final name, for packages that list the
// names in their folder.
const Suffix = `\.tmp-[a-z2-7]{16}`

// aside is the suffix after the id of a folder that was moved aside for a new folder.
const aside = ".old"

// An id is a host, a random number, and a checksum of both and of the final name. It is short,
// because a folder may contain sockets, whose path has at most 108 bytes.
const (
	hostBytes   = 2
	chanceBytes = 5
	sumBytes    = 3
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newName returns an unused random name with the given prefix.
func newName(prefix string) string {
	id := append(make([]byte, 0, hostBytes+chanceBytes+sumBytes), thisHost()...)
	id = id[:hostBytes+chanceBytes]
	rand.Read(id[hostBytes:]) // it never fails
	return prefix + letters.EncodeToString(append(id, checksum(prefix, id)...))
}

// parse reports whether newName created the name with the prefix, and whether it did so on this
// host.
func parse(prefix, name string) (ours, here bool) {
	text, found := strings.CutPrefix(name, prefix)
	id, err := letters.DecodeString(text)
	if !found || err != nil || len(id) != hostBytes+chanceBytes+sumBytes || letters.EncodeToString(id) != text {
		return false, false
	}
	number, sum := id[:hostBytes+chanceBytes], id[hostBytes+chanceBytes:]
	return string(sum) == string(checksum(prefix, number)), string(id[:hostBytes]) == string(thisHost())
}

// IsName reports whether this package has created a name, or moved it aside: a user may have chosen a name that
// only matches Suffix.
func IsName(name string) bool {
	id := strings.TrimSuffix(name, aside)
	at := strings.LastIndex(id, infix)
	if at < 0 {
		return false
	}
	ours, _ := parse(id[:at+len(infix)], id)
	return ours
}

func checksum(prefix string, number []byte) []byte {
	sum := sha256.Sum256(append([]byte(prefix), number...))
	return sum[:sumBytes]
}

// thisHost returns a hash of the host name, which may be empty.
func thisHost() []byte {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(name))
	return sum[:hostBytes]
}
