package deploy

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"time"

	"siafu/internal/fault"
)

// Code is the deployment package of a function.
type Code struct {
	Path   string
	Zip    []byte
	SHA256 string // of Zip, in base64, as Lambda reports it
}

// Limits of Lambda in bytes: for an executable, and for a zip in a request.
const (
	mostExecutable = 250 << 20
	mostZip        = 50 << 20
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Pack returns the zip of an executable, which is its only file, bootstrap. The file has a fixed
// time, so that equal executables give equal zips. Pack returns an error unless the file is a
// static executable for the architecture.
func Pack(path, arch string) (Code, error) {
	build := "make function LAMBDA_ARCH=" + arch
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Code{}, fault.New(fault.Missing, "lambda", path, "the function's executable does not exist").Then("build it: %s", build)
	}
	if err != nil {
		return Code{}, fault.System("lambda", path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > mostExecutable {
		return Code{}, fault.New(fault.Data, "lambda", path, "it is not an executable of at most %d bytes", mostExecutable).
			Then("build one: %s", build)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Code{}, fault.System("lambda", path, err)
	}
	if why := unfitReason(text, arch); why != "" {
		return Code{}, fault.New(fault.Data, "lambda", path, "%s", why).Then("build one for it: %s", build)
	}
	packed, err := archive(text)
	if err != nil {
		return Code{}, fault.New(fault.Runtime, "lambda", path, "%v", err)
	}
	if len(packed) > mostZip {
		return Code{}, fault.New(fault.Data, "lambda", path, "its zip has %d bytes, but Lambda accepts at most %d", len(packed), mostZip).
			Then("build a smaller one: %s", build)
	}
	sum := sha256.Sum256(packed)
	return Code{path, packed, base64.StdEncoding.EncodeToString(sum[:])}, nil
}

// unfitReason returns why a file cannot be a function for an architecture, or "" if it can.
func unfitReason(text []byte, arch string) string {
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return "it is not an ELF executable: " + err.Error()
	}
	switch {
	case f.Machine != machines[arch] || f.Class != elf.ELFCLASS64:
		return "it is an executable for " + f.Machine.String() + ", but the function needs " + arch
	case f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return "it is not an executable but " + f.Type.String()
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "the executable is not static, and Lambda has other libraries"
		}
	}
	return ""
}

func archive(text []byte) ([]byte, error) {
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(0o755)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.CreateHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}
