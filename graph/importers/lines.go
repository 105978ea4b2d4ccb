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
	"siafu/internal/npy"
)

// blockSize is the number of bytes that one goroutine parses at a time, and maxLine the
// maximum length of a line.
const (
	blockSize = 1 << 20
	maxLine   = 64 << 20
)

type block struct {
	text []byte
	line int64 // number of the first line, from 1
}

// lineEnds is the remedy for line ends of old Macintosh programs.
const lineEnds = "convert its line ends: tr '\\r' '\\n' < FILE > NEW"

// checkLineEnds refuses a carriage return within a line, since it may be meant as the end.
func (b block) checkLineEnds(at input) error {
	for from := 0; ; {
		i := bytes.IndexByte(b.text[from:], '\r')
		if from += i + 1; i < 0 || from == len(b.text) {
			return nil
		}
		if b.text[from] != '\n' {
			line := b.line + int64(bytes.Count(b.text[:from], []byte{'\n'}))
			return at.bad("line %d has a carriage return in its middle", line).Then(lineEnds)
		}
	}
}

// openText opens a text file, unpacked if its name ends in .gz or .zst.
func openText(at input) io.ReadCloser { return openPacked(at, filepath.Ext(at.path)) }

// openPacked opens a file with the compression of an extension. A .zst file is unpacked up to a
// maximum length, which depends on its size.
func openPacked(at input, extension string) io.ReadCloser {
	f, err := os.Open(at.path)
	at.system(err)
	in := bufio.NewReaderSize(f, blockSize)
	switch extension {
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(in, zstd.WithDecoderMaxWindow(maxWindow)); err == nil {
			r := &bounded{r: z, left: smallUnpacked + mostUnpacked(at.path)}
			return unpacked{r, func() error { z.Close(); return f.Close() }}
		}
	case ".gz":
		var z *gzip.Reader
		if z, err = gzip.NewReader(in); err == nil {
			return unpacked{z, func() error { return errors.Join(z.Close(), f.Close()) }}
		}
	default:
		return f
	}
	f.Close()
	panic(failure{textFault(at, err)})
}

// unpacked is a reader of unpacked text, which closes the decoder and the file under it.
type unpacked struct {
	io.Reader
	close func() error
}

func (u unpacked) Close() error { return u.close() }

// mostUnpacked returns the maximum unpacked length of a .gz file.
func mostUnpacked(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return npy.Deflated * info.Size()
}

// textFault returns an IO fault if the file could not be read, and a Data fault if its
// compression is damaged.
func textFault(at input, err error) error {
	var pe *fs.PathError
	switch {
	case errors.As(err, &pe):
		return fault.System(at.op, at.path, err)
	case errors.Is(err, errSwollen):
		return damaged(at, "", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at.bad("the compressed data is truncated").Then("fetch the file again")
	}
	return (&fault.Error{Op: at.op, Kind: fault.Data, Path: at.path, Err: err}).Then("fetch the file again")
}

// parseFile parses the lines of a file in several goroutines, block by block, and passes the
// results to take in the order of the file. The first error in that order ends the import.
func parseFile[T any](at input, parse func(block) (T, error), take func(T)) {
	r := openText(at)
	defer r.Close()
	parseText(r, at, parse, take)
}

// job is a block for a parser, which sets the result.
type job[T any] struct {
	block
	value  T
	err    error
	parsed chan struct{} // closed after that
}

func parseText[T any](r io.Reader, at input, parse func(block) (T, error), take func(T)) {
	workers := runtime.GOMAXPROCS(0)
	jobs := make(chan *job[T], workers)
	order := make(chan *job[T], 2*workers) // bounds the text in memory
	stop := make(chan struct{})
	var readErr error
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop) // take may panic
	for range workers {
		running.Go(func() {
			for j := range jobs {
				if j.err = j.block.checkLineEnds(at); j.err == nil {
					j.value, j.err = parse(j.block)
				}
				close(j.parsed)
			}
		})
	}
	running.Go(func() {
		defer close(jobs)
		defer close(order)
		readErr = cutBlocks(r, at, func(b block) bool {
			j := &job[T]{block: b, parsed: make(chan struct{})}
			select {
			case order <- j:
				jobs <- j
				return true
			case <-stop:
				return false
			}
		})
	})
	for j := range order {
		<-j.parsed
		take(must(j.value, j.err))
	}
	check(readErr)
}

// cutBlocks cuts a text into blocks that end with a line, until give returns false.
func cutBlocks(r io.Reader, at input, give func(block) bool) error {
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
			return textFault(at, err)
		}
		cut := len(text)
		if !end {
			cut = bytes.LastIndexByte(text, '\n') + 1
		}
		if len(text)-cut > maxLine {
			return at.bad("line %d is longer than %d bytes", line, maxLine)
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
