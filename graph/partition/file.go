package partition

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strconv"

	"siafu/internal/fault"
	"siafu/internal/npy"
)

const opFile = "read assignment"

// fromFile reads the owners of n vertices from a file. The file is either text with one rank per
// line (the format of METIS, KaHIP and Dorylus) or an npy array of integers. The first bytes of the
// file distinguish the two formats.
func fromFile(path string, n, parts int) ([]uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System(opFile, path, err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	if magic, _ := r.Peek(6); string(magic) == "\x93NUMPY" {
		return fromNpy(r, path, n, parts)
	}
	return fromText(r, path, n, parts)
}

func bad(path, format string, args ...any) *fault.Error {
	return fault.New(fault.Data, opFile, path, format, args...)
}

// fromText reads one rank per line. A line may have leading and trailing spaces. The file may end
// with empty lines.
func fromText(r io.Reader, path string, n, parts int) ([]uint32, error) {
	owner := make([]uint32, 0, n)
	lines := bufio.NewScanner(r)
	line, blank := 0, 0
	for lines.Scan() {
		line++
		word := bytes.TrimSpace(lines.Bytes())
		if len(word) == 0 {
			blank = line
			continue
		}
		if blank != 0 {
			return nil, bad(path, "line %d is empty", blank).Then("write one rank per line")
		}
		p, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			return nil, bad(path, "line %d: %.40q is not a whole number", line, word).Then("write one rank per line")
		}
		if p < 0 || p >= int64(parts) {
			return nil, outside(path, "line", line, p, parts)
		}
		if len(owner) == n {
			return nil, bad(path, "line %d, but the graph has %d vertices", line, n).Then("write one line per vertex")
		}
		owner = append(owner, uint32(p))
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		return nil, bad(path, "line %d is too long", line+1).Then("write one rank per line")
	} else if err != nil {
		return nil, fault.System(opFile, path, err)
	}
	if len(owner) != n {
		return nil, bad(path, "%d lines, but the graph has %d vertices", len(owner), n).Then("write one line per vertex")
	}
	return owner, nil
}

// outside returns the fault of rank p, which is not below parts.
func outside(path, place string, at int, p int64, parts int) error {
	return bad(path, "%s %d: %d is not below %d", place, at, p, parts).Then("number the ranks from 0 to %d, or increase --parts", parts-1)
}

func fromNpy(r io.Reader, path string, n, parts int) ([]uint32, error) {
	a, err := npy.Read(r, path)
	if err != nil {
		return nil, err
	}
	v, err := a.Int64s()
	if err != nil {
		return nil, err
	}
	if len(v) != n {
		return nil, bad(path, "%d numbers, but the graph has %d vertices", len(v), n).Then("write one number per vertex")
	}
	owner := make([]uint32, n)
	for i, p := range v {
		if p < 0 || p >= int64(parts) {
			return nil, outside(path, "position", i, p, parts)
		}
		owner[i] = uint32(p)
	}
	return owner, nil
}
