package pickle

import "fmt"

// The values that a pickle builds: nil, bool, int64, float64, string (for text and bytes), and
// the following types.
type (
	Tuple []any
	List  struct{ Items []any }
	// Dict keeps its items in the order of the file, duplicates included.
	Dict struct{ Keys, Values []any }
	// Global is the name of a class or a function, "module name".
	Global string
	// Object is a call or an instance: the class or function, its arguments, and the state and
	// items that later instructions set.
	Object struct {
		Class Global
		Args  Tuple
		State any
		Items Dict
	}
	// Persistent is a reference to an object outside of the pickle, by id.
	Persistent struct{ ID any }
)

// mark is on the stack where an instruction MARK was.
type mark struct{}

// Get returns the value of a word, the last one if it is repeated.
func (d *Dict) Get(key string) any {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if k, ok := d.Keys[i].(string); ok && k == key {
			return d.Values[i]
		}
	}
	return nil
}

// Describe names a value in a message, without its content: a value may be large or contain
// itself.
func Describe(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool, int64, float64:
		return fmt.Sprint(x)
	case string:
		return fmt.Sprintf("a string of %d bytes", len(x))
	case Tuple:
		return fmt.Sprintf("a tuple of %d", len(x))
	case *List:
		return fmt.Sprintf("a list of %d", len(x.Items))
	case *Dict:
		return fmt.Sprintf("a dict of %d", len(x.Keys))
	case Global:
		return fmt.Sprintf("the name %q", string(x))
	case *Object:
		return fmt.Sprintf("an object of %q", string(x.Class))
	case *Persistent:
		return "a value outside of the pickle"
	}
	return "a mark"
}

// Text returns v if it is a string, else a description.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return Describe(v)
}
