package importers

import (
	"encoding/json"
	"os"

	"siafu/internal/fault"
)

// failure is a panic that ends an import with an error.
type failure struct{ err error }

// check ends the import if err is not nil; catch returns the error.
//
// Design note: an importer has dozens of reads that can fail. After a failure none of its
// functions has anything to do, because the keeper owns all files and memory. A failure
// therefore panics, and load converts the panic to an error. Callbacks of parseFile and of
// graph.EdgeSource do not run under load and return errors.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v. It ends the import if err is not nil.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// catch converts a failure to *err. It must be deferred.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.err
	default:
		panic(r)
	}
}

// place names an operation and the file that it reads, for messages.
type place struct{ op, path string }

// bad returns a fault in the content of the file.
func (p place) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, p.op, p.path, format, args...)
}

// require ends the import with a fault in the content of the file unless ok. remedy may be "".
func (p place) require(ok bool, remedy, format string, args ...any) {
	if !ok {
		check(p.bad(format, args...).Then("%s", remedy))
	}
}

// refuse ends the import with a fault in the user's flags.
func (p place) refuse(remedy, format string, args ...any) {
	check(fault.New(fault.Usage, p.op, p.path, format, args...).Then("%s", remedy))
}

// read returns the content of the file.
func (p place) read() []byte {
	b, err := os.ReadFile(p.path)
	if err != nil {
		check(fault.System(p.op, p.path, err))
	}
	return b
}

// json decodes the file.
func (p place) json(to any) { p.wrap(json.Unmarshal(p.read(), to)) }

// wrap ends the import if err is not nil. The fault names the file, unless err names one.
func (p place) wrap(err error) {
	if f, ok := err.(*fault.Error); ok && f.Path != "" {
		check(f)
	}
	if err != nil {
		check(&fault.Error{Op: p.op, Kind: fault.Data, Path: p.path, Err: err})
	}
}
