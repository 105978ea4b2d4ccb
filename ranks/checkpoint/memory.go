package checkpoint

import (
	"encoding/binary"
	"io"

	"siafu/internal/wire"
)

// A state in memory, and between processes, has the files of a checkpoint without its manifest: for each, its
// name and its content.

// Encode returns the state in memory. The error is that of a number which is not finite.
func (s *State) Encode() ([]byte, error) {
	s.check()
	text, err := s.EncodeHead()
	if err != nil {
		return nil, err
	}
	var w wire.Writer
	err = s.each(text, func(name string, write func(io.Writer) error) error {
		w.Bytes([]byte(name))
		w.Numbers(0)
		at := len(w.B)
		err := write(&w)
		binary.LittleEndian.PutUint64(w.B[at-8:], uint64(len(w.B)-at))
		return err
	})
	return w.B, err
}

// Decode decodes the output of Encode. It never trusts the bytes: it returns a fault for invalid input, which
// names the origin of the state.
func Decode(b []byte, origin string) (*State, error) {
	list, err := wire.Arrays(b)
	files := map[string][]byte{}
	for i := 1; i < len(list); i += 2 {
		files[string(list[i-1])] = list[i]
	}
	if err == nil && (files[modelFile] == nil || files[optimizerFile] == nil || files[stateFile] == nil) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, damaged(origin, "%v", err)
	}
	return readFiles(origin, func(name string) ([]byte, error) { return files[name], nil })
}
