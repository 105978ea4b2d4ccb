package importers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"siafu/internal/fault"
)

// blockSize is the number of bytes that one goroutine parses at a time, and maxLine the
// maximum length of a line.
const (
	blockSize = 1 << 20
	maxLine   = 64 << 20
)

// block is a sequence of whole lines of a text.
type block struct {
	text []byte
	line int64 // number of the first line, from 1
}

// openText opens a text file, unpacked if its name ends in .gz or .zst.
func openText(op, path string) (io.ReadCloser, error) {
	return openPacked(op, path, filepath.Ext(path))
}

// openPacked opens a file with the compression of an extension. A .zst file is unpacked up to a
// maximum length, which depends on its size.
func openPacked(op, path, extension string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	in := bufio.NewReaderSize(f, blockSize)
	switch extension {
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(in, zstd.WithDecoderMaxWindow(maxWindow)); err == nil {
			r := &bounded{r: z, left: smallUnpacked + mostUnpacked(path)}
			return unpacked{r, func() error { z.Close(); return f.Close() }}, nil
		}
	case ".gz":
		var z *gzip.Reader
		if z, err = gzip.NewReader(in); err == nil {
			return unpacked{z, func() error { return errors.Join(z.Close(), f.Close()) }}, nil
		}
	default:
		return f, nil
	}
	f.Close()
	return nil, textFault(op, path, err)
}

// unpacked is a reader of unpacked text, which closes the decoder and the file under it.
type unpacked struct {
	io.Reader
	close func() error
}

func (u unpacked) Close() error { return u.close() }

// deflated is deflate's maximum expansion: a match of 258 bytes takes two bits.
const deflated = 1032

// mostUnpacked returns the maximum unpacked length of a .gz file.
func mostUnpacked(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return deflated * info.Size()
}

// textFault returns an IO fault if the file could not be read, and a Data fault if its
// compression is damaged.
func textFault(op, path string, err error) error {
	var pe *fs.PathError
	switch {
	case errors.As(err, &pe):
		return fault.System(op, path, err)
	case errors.Is(err, errSwollen):
		return damaged(op, path, "", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.Data, op, path, "the compressed data is truncated").Then("fetch the file again")
	}
	return (&fault.Error{Op: op, Kind: fault.Data, Path: path, Err: err}).Then("fetch the file again")
}

// parseFile parses the lines of a file in several goroutines, block by block, and passes the
// results to take in the order of the file. It stops at the first error in that order.
func parseFile[T any](op, path string, parse func(block) (T, error), take func(T) error) error {
	r, err := openText(op, path)
	if err != nil {
		return err
	}
	defer r.Close()
	return parseText(r, op, path, parse, take)
}

// parsed is the result of a block.
type parsed[T any] struct {
	value T
	err   error
}

// job is a block for a parser, with a channel for the result.
type job[T any] struct {
	block
	done chan parsed[T] // capacity 1: a parser never waits
}

func parseText[T any](r io.Reader, op, path string, parse func(block) (T, error), take func(T) error) error {
	workers := runtime.GOMAXPROCS(0)
	jobs := make(chan job[T], workers)
	order := make(chan job[T], 2*workers) // bounds the text in memory
	stop := make(chan struct{})
	var readErr error
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for j := range jobs {
				v, err := parse(j.block)
				j.done <- parsed[T]{v, err}
			}
		})
	}
	running.Go(func() {
		defer close(jobs)
		defer close(order)
		readErr = cutBlocks(r, op, path, func(b block) bool {
			j := job[T]{b, make(chan parsed[T], 1)}
			select {
			case order <- j:
				jobs <- j
				return true
			case <-stop:
				return false
			}
		})
	})
	var err error
	for j := range order {
		p := <-j.done
		if err != nil {
			continue // drain, so that all goroutines end
		}
		if err = p.err; err == nil {
			err = take(p.value)
		}
		if err != nil {
			close(stop)
		}
	}
	running.Wait()
	if err == nil {
		err = readErr
	}
	return err
}

// cutBlocks cuts a text into blocks that end with a line, until give returns false.
func cutBlocks(r io.Reader, op, path string, give func(block) bool) error {
	line := int64(1)
	var rest []byte // the unfinished line at the end of the last block
	for {
		// At least doubled, so that a long line is not copied for each block of it.
		text := make([]byte, len(rest)+max(blockSize, len(rest)))
		copy(text, rest)
		n, err := fill(r, text[len(rest):])
		text = text[:len(rest)+n]
		end := err == io.EOF
		if err != nil && !end {
			return textFault(op, path, err)
		}
		cut := len(text)
		if !end {
			cut = bytes.LastIndexByte(text, '\n') + 1
		}
		if len(text)-cut > maxLine {
			return fault.New(fault.Data, op, path, "line %d is longer than %d bytes", line, maxLine)
		}
		rest = text[cut:]
		if cut > 0 && !give(block{text[:cut], line}) {
			return nil
		}
		line += int64(bytes.Count(text[:cut], []byte{'\n'}))
		if end {
			return nil
		}
	}
}

// fill reads until b is full. Unlike io.ReadFull it distinguishes the end of the text (io.EOF)
// from truncated compression (io.ErrUnexpectedEOF).
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}
