package arrayfile

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"siafu/internal/durable"
	"siafu/internal/mapped"
)

const opWrite = "write"

// Writer writes a file array by array. Its first error sticks: every later
// call returns it, and Commit does not give the file its name.
type Writer struct {
	file   *durable.File
	end    *io.OffsetWriter // writes to file where the last array ends
	buf    *bufio.Writer    // of end
	head   header
	open   bool // the last entry is still growing
	offset int64
	crc    uint32 // of the header, once committed
	err    error
	done   bool
}

// Create begins a file of the given kind, which gets the name path when it is committed. Faults
// have kind Missing or IO.
func Create(path, kind string) (*Writer, error) {
	if len(kind) > nameBytes {
		panic("arrayfile: kind is too long")
	}
	f, err := durable.Create(opWrite, path)
	if err != nil {
		return nil, err
	}
	end := io.NewOffsetWriter(f, 0)
	w := &Writer{file: f, end: end, buf: bufio.NewWriterSize(end, 1<<20), head: header{kind: kind}}
	w.write(make([]byte, page)) // room for the header, which comes last
	return w, w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.buf.Write(b); err != nil {
		w.fail(err)
		return
	}
	w.offset += int64(len(b))
}

// fail keeps the first error and removes the temporary file.
func (w *Writer) fail(err error) {
	w.err = err
	w.Abort()
}

// Begin starts an array that Append fills; the next Begin, Put or Commit ends it.
func Begin[T mapped.Elem](w *Writer, name string) error {
	if w.done && w.err == nil {
		panic("arrayfile: writer is closed")
	}
	if len(name) > nameBytes || len(w.head.entries) == maxArrays {
		panic("arrayfile: name too long or too many arrays")
	}
	w.write(make([]byte, align(w.offset)-w.offset))
	w.head.entries = append(w.head.entries, entry{name: name, typ: typeOf[T](), offset: w.offset})
	w.open = true
	return w.err
}

// Append adds elements to the array that Begin started, of the same type.
func Append[T mapped.Elem](w *Writer, v []T) error {
	if !w.open || w.head.entries[len(w.head.entries)-1].typ != typeOf[T]() {
		panic("arrayfile: Append without a Begin of its type")
	}
	e := &w.head.entries[len(w.head.entries)-1]
	b := mapped.Bytes(v)
	e.crc = crc32.Update(e.crc, castagnoli, b)
	e.count += int64(len(v))
	w.write(b)
	return w.err
}

// Put writes a whole array.
func Put[T mapped.Elem](w *Writer, name string, v []T) error {
	if err := Begin[T](w, name); err != nil {
		return err
	}
	return Append(w, v)
}

// Reserve leaves room for an array of n elements, which Fill writes at any time before Commit. The
// room is a hole in the file.
func Reserve[T mapped.Elem](w *Writer, name string, n int) error {
	if err := Begin[T](w, name); err != nil {
		return err
	}
	w.open = false
	last := &w.head.entries[len(w.head.entries)-1]
	last.count, last.unfilled = int64(n), int64(n)
	if err := w.buf.Flush(); err != nil {
		w.fail(err)
	} else if _, err := w.end.Seek(last.bytes(), io.SeekCurrent); err != nil {
		w.fail(err)
	}
	w.offset += last.bytes()
	return w.err
}

// Fill writes the next elements of an array for which Reserve has left room. It may be called for
// several arrays in turn.
func Fill[T mapped.Elem](w *Writer, name string, v []T) error {
	if w.err != nil {
		return w.err
	}
	i := slices.IndexFunc(w.head.entries, func(e entry) bool { return e.name == name })
	if i < 0 || w.head.entries[i].typ != typeOf[T]() || w.head.entries[i].unfilled < int64(len(v)) {
		panic("arrayfile: Fill without a Reserve of its type and length")
	}
	e, b := &w.head.entries[i], mapped.Bytes(v)
	e.crc = crc32.Update(e.crc, castagnoli, b)
	if _, err := w.file.WriteAt(b, e.offset+e.bytes()-e.unfilled*elemTypes[e.typ].size); err != nil {
		w.fail(err)
	}
	e.unfilled -= int64(len(v))
	return w.err
}

// Commit writes the header, syncs and gives the file its name. It returns the
// first error of the writer; then nothing is left.
func (w *Writer) Commit() error {
	if w.err != nil || w.done {
		return w.err
	}
	if slices.ContainsFunc(w.head.entries, func(e entry) bool { return e.unfilled != 0 }) {
		panic("arrayfile: Commit before all reserved arrays are filled")
	}
	w.head.length = w.offset
	var b []byte
	b, w.crc = w.head.encode()
	for _, step := range []func() error{
		w.buf.Flush,
		func() error { _, err := w.file.WriteAt(b, 0); return err },
		w.file.Commit,
	} {
		if err := step(); err != nil {
			w.fail(err)
			return w.err
		}
	}
	w.done = true
	return nil
}

// Sum returns the length of a committed file and its File.CRC32C.
func (w *Writer) Sum() (length int64, crc string) {
	return w.head.length, fmt.Sprintf("%08x", w.crc)
}

// Abort removes what was written unless it was committed, so it can be deferred.
func (w *Writer) Abort() {
	w.file.Abort()
	w.done = true
}
