package download

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/fault"
)

// verify compares the file at path with its published size and checksum. It removes a wrong
// file that was downloaded. A wrong file that was already in the cache is kept because a user
// may have copied it there. final is the file's final path. final.sha256 contains the checksum
// of an earlier download if no checksum is published.
func (f *fetcher) verify(url, path, final string, want file) error {
	sum, size, err := hash(path)
	if err != nil {
		return err
	}
	expected, by := want.SHA256, "the manifest"
	if expected == "" {
		note, err := os.ReadFile(final + ".sha256")
		if err == nil {
			expected, _, _ = strings.Cut(strings.TrimSpace(string(note)), " ")
			by = final + ".sha256"
		}
	}
	switch {
	case want.Bytes > 0 && size != want.Bytes:
		return reject(path, final, fault.New(fault.Data, op, url, "%d bytes, expected %d", size, want.Bytes))
	case expected == "":
		return f.trust(url, final, sum)
	case sum != strings.ToLower(expected):
		return reject(path, final, fault.New(fault.Data, op, url, "SHA-256 is %s, expected %s of %s", sum, expected, by))
	}
	f.log("download file=%s bytes=%d sha256=%s verified=true", filepath.Base(final), size, sum)
	return nil
}

// reject removes a wrong file that was downloaded and returns the fault with its remedy.
func reject(path, final string, err *fault.Error) error {
	if path == final {
		return err.Then("remove %s and run again", path)
	}
	os.Remove(path)
	return err.Then("run it again (the file is removed), and use another server if it fails again")
}

// trust stores the checksum of a first download.
func (f *fetcher) trust(url, final, sum string) error {
	f.log("download url=%s sha256=%s verified=false: no checksum of this file is published; its checksum is now recorded in %s",
		url, sum, final+".sha256")
	note := sum + "  " + filepath.Base(final) + "\n"
	return durable.WriteFile(op, final+".sha256", []byte(note), durable.Perm)
}

// hash returns the SHA-256 of a file, in hexadecimal, and its size in bytes.
func hash(path string) (sum string, size int64, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", 0, fault.System(op, path, err)
	}
	defer in.Close()
	h := sha256.New()
	if size, err = io.Copy(h, in); err != nil {
		return "", 0, fault.System(op, path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
