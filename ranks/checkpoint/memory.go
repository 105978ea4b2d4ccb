package checkpoint

import (
	"bytes"
	"io"

	"siafu/internal/wire"
)

// A state in memory, and between processes, has the files of a checkpoint without its manifest: for each, its
// name and its content.

// Encode returns the state in memory. The error is that of a number which is not finite.
func (s *State) Encode() ([]byte, error) {
	s.check()
	text, err := s.encode()
	if err != nil {
		return nil, err
	}
	var w wire.Writer
	err = s.each(text, func(name string, write func(io.Writer) error) error {
		w.Bytes([]byte(name))
		at := len(w.B)
		w.Numbers(0)
		b := bytes.NewBuffer(w.B)
		if err := write(b); err != nil {
			return err
		}
		w.B = b.Bytes()
		length := wire.Writer{B: w.B[:at]}
		length.Numbers(len(w.B) - at - 8)
		return nil
	})
	return w.B, err
}

// Decode decodes the output of Encode. It never trusts the bytes: it returns a fault for invalid input, which
// names the origin of the state.
func Decode(b []byte, origin string) (*State, error) {
	files, r := map[string][]byte{}, wire.Reader{Rest: b}
	for len(r.Rest) > 0 && r.Err == nil {
		name := string(r.Bytes(1, len(stateFile)+len(optimizerFile)))
		files[name] = r.Bytes(0, len(r.Rest))
	}
	if r.Err == nil && (files[modelFile] == nil || files[stateFile] == nil) {
		r.Fail(io.ErrUnexpectedEOF)
	}
	if r.Err != nil {
		return nil, damaged(origin, "%v", r.Err)
	}
	return readFiles(origin, func(name string) ([]byte, error) { return files[name], nil })
}
